// SPDX-License-Identifier: GPL-2.0-only
/*
 * A session: what one client has open. (How its messages are served: msg.c.)
 *
 * Ids: 24 bits, counted up from a random start, so that neither an id of an earlier incarnation of
 * the session nor one that was just closed names another device. The table is indexed by the low
 * bits and the whole id is compared: a lookup is one load. I/O finds its open under RCU and pins it
 * with a percpu reference.
 *
 * The life of an open: NEW, then LIVE from publish; a CLOSE, a force_close or the end of the
 * session kills the reference (CLOSING); when the last I/O has ended, release_work gives the
 * backing store back (RELEASED). The entry leaves the table, and the id becomes free, when the
 * client has sent CLOSE, when the open was lost (ibnbd_srv_open_lose()), or when the session ends.
 * After a force_close the entry stays until then, so that late I/O gets -ENOTCONN and not another
 * device.
 *
 * References: the table holds one on each open (its kobject). Each open, ibtrs (until session_down)
 * and each queued work of msg.c hold one on the session (kref). So a session can outlive its
 * client: session_down() waits until all opens are released, but a disk may take any time for that,
 * and after SESSION_DOWN the client may come back for its other disks.
 */
#include <linux/log2.h>
#include "ibnbd/logic/export.h"
#include "ibnbd/logic/text.h"
#include "ibnbd/server/params.h"
#include "ibnbd/server/session.h"
#include "ibnbd/server/sysfs.h"
#include "ibnbd/server/trace.h"

/* As long as ibtrs waits for a request that keeps a client out. */
#define SESSION_DOWN	(30 * HZ)

static void session_free_work(struct work_struct *work)
{
	struct ibnbd_srv_session *s = container_of(work, struct ibnbd_srv_session, free_work);

	destroy_workqueue(s->wq);
	kvfree(s);
	ibnbd_srv_dirs_released();
}

/* The last reference may be put by a work of the session itself. */
void ibnbd_srv_session_free(struct kref *kref)
{
	struct ibnbd_srv_session *s = container_of(kref, struct ibnbd_srv_session, kref);

	queue_work(ibnbd_srv_ctl_wq, &s->free_work);
}

/* ---- the table ----------------------------------------------------------- */

static struct ibnbd_srv_open *session_slot(struct ibnbd_srv_session *s, u32 id)
{
	return rcu_dereference_protected(s->table[id & s->mask], lockdep_is_held(&s->lock));
}

/* By id, whatever its state. */
static struct ibnbd_srv_open *session_entry(struct ibnbd_srv_session *s, u32 id)
{
	struct ibnbd_srv_open *open = session_slot(s, id);

	return open && open->id == id ? open : NULL;
}

/*
 * The live open of this very name (protocol 10.4), as the client sent it, or NULL. It is not
 * unclaimed any more, and is pinned by an I/O reference, which the caller drops by
 * percpu_ref_put(). @unclaimed: set: its client had not come for it so far.
 */
struct ibnbd_srv_open *ibnbd_srv_session_find(struct ibnbd_srv_session *s, const char *name,
					      bool *unclaimed)
{
	u32 i;

	guard(spinlock)(&s->lock);
	for (i = 0; i <= s->mask; i++) {
		struct ibnbd_srv_open *open = session_slot(s, i);

		if (open && open->state == IBNBD_SRV_OPEN_LIVE &&
		    ibnbd_export_same(open->name, name) &&
		    percpu_ref_tryget_live(&open->ref)) {
			*unclaimed = open->unclaimed;
			WRITE_ONCE(open->unclaimed, 0);
			return open;
		}
	}
	return NULL;
}

/* The live open in this slot of the table, pinned by its I/O reference; or NULL. */
struct ibnbd_srv_open *ibnbd_srv_session_live(struct ibnbd_srv_session *s, u32 slot)
{
	struct ibnbd_srv_open *open;

	guard(spinlock)(&s->lock);
	open = session_slot(s, slot);
	if (open && (open->state != IBNBD_SRV_OPEN_LIVE || !percpu_ref_tryget_live(&open->ref)))
		open = NULL;
	return open;
}

/*
 * Give an open, which has its place in an export, its id: from here on I/O, CLOSE and force_close
 * find it. 0; -EMFILE: the table is full, and @open counts as closing. The caller still has its own
 * I/O reference either way.
 */
int ibnbd_srv_session_publish(struct ibnbd_srv_session *s, struct ibnbd_srv_open *open)
{
	guard(spinlock)(&s->lock);
	if (s->nr >= s->max_maps) {
		/* Until its place is released, the export admits no other writer. */
		open->state = IBNBD_SRV_OPEN_CLOSING;
		return -EMFILE;
	}
	while (session_slot(s, s->next_id))
		s->next_id++;
	open->id = s->next_id++ & IBNBD_EVENT_ID_MASK;
	open->state = IBNBD_SRV_OPEN_LIVE;
	rcu_assign_pointer(s->table[open->id & s->mask], open);
	WRITE_ONCE(s->nr, s->nr + 1);
	s->used = true;
	return 0;
}

/* The id is free again; the caller drops the table's reference after it has released the lock. */
static void session_unpublish(struct ibnbd_srv_session *s, struct ibnbd_srv_open *open)
{
	RCU_INIT_POINTER(s->table[open->id & s->mask], NULL);
	WRITE_ONCE(s->nr, s->nr - 1);
}

/* ---- opens: end of life -------------------------------------------------- */

/* Returns the CLOSE to be answered, if one waits. *gone: the entry left the table. */
static struct ibtrs_srv_op *open_released(struct ibnbd_srv_open *open, bool *gone)
{
	struct ibnbd_srv_session *s = open->session;
	struct ibtrs_srv_op *op;

	guard(spinlock)(&s->lock);
	op = open->close_op;
	open->close_op = NULL;
	open->state = IBNBD_SRV_OPEN_RELEASED;
	*gone = open->given_up || open->lost || !rcu_access_pointer(s->ibtrs);
	if (*gone)
		session_unpublish(s, open);
	return op;
}

void ibnbd_srv_session_release_work(struct work_struct *work)
{
	struct ibnbd_srv_open *open = container_of(work, struct ibnbd_srv_open, release_work);
	struct ibnbd_srv_session *s = open->session;
	struct ibtrs_srv_op *op;
	bool gone;

	complete_all(&open->drained);
	ibnbd_srv_export_release(open);
	trace_ibnbd_srv_close(s->label, open->name, open->id);
	/* from here on another task may free @open and @s, unless @gone */
	op = open_released(open, &gone);
	if (!gone)
		return;
	wake_up(&s->empty);
	if (op)
		ibtrs_srv_op_reply(op, 0);
	ibnbd_srv_open_put(open);
}

/*
 * Serve CLOSE. @op is answered when the last I/O has ended and the backing store is closed, or at
 * once for an unknown id (protocol 10.1). @nowait: it is answered at once in any case: a client
 * that gives up a disk that hangs must not lose one of its few message slots as well.
 */
void ibnbd_srv_session_close(struct ibnbd_srv_session *s, u32 id, struct ibtrs_srv_op *op,
			     bool nowait)
{
	struct ibnbd_srv_open *open, *gone = NULL;
	int err = 0;

	spin_lock(&s->lock);
	open = session_entry(s, id);
	if (open && open->given_up) {
		err = -EBUSY;	/* an earlier CLOSE waits already */
	} else if (open && open->state == IBNBD_SRV_OPEN_RELEASED) {
		session_unpublish(s, open);
		gone = open;
	} else if (open) {
		open->given_up = true;
		if (!nowait) {
			open->close_op = op;
			op = NULL;
		}
		ibnbd_srv_open_kill(open);
	}
	spin_unlock(&s->lock);
	if (op)
		ibtrs_srv_op_reply(op, err);
	if (gone)
		ibnbd_srv_open_put(gone);
}

/*
 * Has the client closed the device that the ops of this group are for (struct ibtrs_srv_ops)? True
 * if a CLOSE of the device has come, if it was closed by the server, or if no device with this id
 * is open any more. After a close by the server no repeated request reaches the disk, and no writer
 * is admitted before all requests have ended.
 */
bool ibnbd_srv_session_given_up(void *priv, u32 group)
{
	struct ibnbd_srv_session *s = priv;
	struct ibnbd_srv_open *open;

	guard(spinlock)(&s->lock);
	open = session_entry(s, group - 1);
	return !open || open->state != IBNBD_SRV_OPEN_LIVE;
}

/*
 * Requests that a disk does not end keep their client out (struct ibtrs_srv_ops): the mapping of
 * @group is closed, as by force. When the client is back, it sends OPEN again, and gets the disk
 * once the old requests have ended.
 */
void ibnbd_srv_session_give_up(void *priv, u32 group)
{
	struct ibnbd_srv_session *s = priv;

	guard(spinlock)(&s->lock);
	ibnbd_srv_open_lose(
		session_entry(s, group - 1),
		"it has not ended its requests, and its client cannot come back before that");
}

/*
 * The administrator takes a mapping away; @open is pinned by the sysfs file that is being written.
 * Tells the client, and waits until its I/O has ended. Does nothing if the mapping is not published
 * yet, or is being closed already. 0, or -EINTR if a signal ended the wait; the mapping is being
 * closed in that case, too.
 */
int ibnbd_srv_session_force_close(struct ibnbd_srv_open *open)
{
	struct ibnbd_srv_session *s = open->session;
	bool live;

	scoped_guard(spinlock, &s->lock)
		live = ibnbd_srv_open_kill(open);
	if (!live)
		return 0;
	pr_info("session %s: %s closed by force\n", s->label, open->name);
	ibnbd_srv_open_tell(open, IBNBD_EVENT_REVOKED);
	return wait_for_completion_killable(&open->drained) ? -EINTR : 0;
}

/* ---- sessions ------------------------------------------------------------ */

/*
 * May a client use this session name (struct ibtrs_srv_ops)? @from: address and GID of its first
 * path. @name: valid (E-8).
 */
bool ibnbd_srv_session_name_allowed(const struct ibtrs_origin *from, const char *name,
				    const char **why)
{
	char addr[IBTRS_ADDR_STR_MAX];
	size_t i, len = strlen(name);
	const char *unseen;
	u32 code;

	*why = "the session's name is not on the allow-list; add it to the parameter allow";
	if (ibnbd_srv_session_allowed(from, name)) {
		*why = "the session's name has an invisible character";
		for (i = 0; i < len && !ibnbd_unseen(name + i, len - i, &code, &unseen); i++)
			;
		if (i == len)
			return true;
	}
	ibtrs_addr_format(&from->addr, addr, sizeof(addr));
	ibnbd_srv_refuse(name, addr, -EACCES, *why);
	return false;
}

/* A client has arrived (struct ibtrs_srv_ops). Its name is valid (E-8). Return: 0 or -ENOMEM. */
int ibnbd_srv_session_up(struct ibtrs_srv_session *ibtrs, const struct ibtrs_srv_client *c,
			 void **priv)
{
	u32 max = ibnbd_srv_max_maps(), slots = roundup_pow_of_two(max);
	struct ibnbd_srv_opener *o;
	struct ibnbd_srv_session *s;

	s = kvzalloc(struct_size(s, table, slots), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	/* the kernel cuts the names of workqueues */
	s->wq = alloc_workqueue("ibnbd-srv-%.13s", WQ_UNBOUND, WQ_MAX_ACTIVE, c->name);
	if (!s->wq) {
		kvfree(s);
		return -ENOMEM;
	}
	ibnbd_srv_dirs_made();
	RCU_INIT_POINTER(s->ibtrs, ibtrs);
	s->mask = slots - 1;
	s->max_maps = max;
	s->next_id = get_random_u32();
	strscpy(s->name, c->name, sizeof(s->name));
	strscpy(s->label, c->label, sizeof(s->label));
	strscpy(s->key, c->key, sizeof(s->key));
	import_uuid(&s->uuid, c->identity);
	kref_init(&s->kref);
	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->ctl_ops);
	INIT_WORK(&s->ctl_work, ibnbd_srv_dispatch_work);
	INIT_LIST_HEAD(&s->open_ops);
	for (o = s->openers; o < s->openers + IBNBD_SRV_OPENERS; o++) {
		o->session = s;
		INIT_WORK(&o->work, ibnbd_srv_dispatch_opener_work);
	}
	INIT_WORK(&s->free_work, session_free_work);
	init_waitqueue_head(&s->empty);
	*priv = s;
	return 0;
}

/* Does this slot hold an open that the client did not close? */
static bool session_left_open(struct ibnbd_srv_session *s, u32 slot)
{
	struct ibnbd_srv_open *open = session_slot(s, slot);

	return open && !open->given_up;
}

/*
 * A client has been away for long (struct ibtrs_srv_ops): every mapping is closed. A mapping whose
 * requests have ended frees its disk for others at once. The id becomes free when its mapping is
 * released, as if the client had sent CLOSE.
 */
void ibnbd_srv_session_lost(void *priv)
{
	struct ibnbd_srv_session *s = priv;
	u32 slot;

	for (slot = 0; slot <= s->mask; slot++) {
		guard(spinlock)(&s->lock);
		s->left_open |= session_left_open(s, slot);
		ibnbd_srv_open_lose(session_slot(s, slot), "its client is gone");
	}
}

/*
 * Start closing the open in one slot. Returns the open whose reference the caller drops, or NULL.
 */
static struct ibnbd_srv_open *session_sweep(struct ibnbd_srv_session *s, u32 slot)
{
	struct ibnbd_srv_open *open;

	guard(spinlock)(&s->lock);
	s->left_open |= session_left_open(s, slot);
	open = session_slot(s, slot);
	if (open && open->state == IBNBD_SRV_OPEN_RELEASED) {
		session_unpublish(s, open);
		return open;
	}
	if (open)
		ibnbd_srv_open_kill(open);
	return NULL;
}

/*
 * A client is gone (struct ibtrs_srv_ops), and no op is running: close what it had open. Waits
 * until the backing stores are closed, for SESSION_DOWN at most. @ibtrs is freed a grace period
 * after this has returned.
 */
enum ibtrs_srv_left ibnbd_srv_session_down(struct ibtrs_srv_session *ibtrs, void *priv)
{
	struct ibnbd_srv_session *s = priv;
	enum ibtrs_srv_left left;
	u32 slot;

	scoped_guard(spinlock, &s->lock)
		RCU_INIT_POINTER(s->ibtrs, NULL);
	for (slot = 0; slot <= s->mask; slot++) {
		struct ibnbd_srv_open *open = session_sweep(s, slot);

		if (open)
			ibnbd_srv_open_put(open);
	}
	wait_event_timeout(s->empty, !READ_ONCE(s->nr), SESSION_DOWN);
	left = s->left_open ? IBTRS_SRV_LEFT_OPEN :
	       s->used	    ? IBTRS_SRV_LEFT_CLOSED :
			      IBTRS_SRV_LEFT_UNUSED;
	ibnbd_srv_session_put(s);
	return left;
}
