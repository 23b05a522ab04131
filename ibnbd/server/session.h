/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_SESSION_H
#define IBNBD_SERVER_SESSION_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/uuid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <ibtrs/key.h>
#include <ibtrs/srv.h>
#include "ibnbd/server/export.h"
#include "ibnbd/server/msg.h"

/**
 * struct ibnbd_srv_session - a client
 * @ibtrs: the client's; NULL: no path and no op is left, nothing new comes. Written under @lock,
 *	readers RCU
 * @wq: for its messages
 * @name: as the client says it; clients with different keys may have the same one
 * @label: the name, or NAME#2 and so on: what the log and sysfs call it
 * @key: that the client has proved; empty: none
 * @table: opens by the low bits of their id
 */
struct ibnbd_srv_session {
	/* set before publish */
	struct ibtrs_srv_session __rcu *ibtrs;
	struct workqueue_struct *wq;
	uuid_t uuid;			/* the client's, the same over reconnects */
	u32 mask;
	u32 max_maps;

	/* hot, rarely written */
	u8 version;			/* 0 until SESS_INFO */
	u64 features;

	struct kref kref;
	spinlock_t lock;		/* table, states of opens, ctl_*, open* */
	u32 next_id;
	u32 nr;				/* entries of the table; written under @lock */
	bool left_open;			/* the client left without closing its opens */
	bool used;			/* it has opened something */
	bool ctl_queued;
	struct list_head ctl_ops;
	struct work_struct ctl_work;
	struct list_head open_ops;
	struct ibnbd_srv_opener openers[IBNBD_SRV_OPENERS];
	struct work_struct free_work;
	wait_queue_head_t empty;
	char name[IBNBD_NAME_LEN];
	char label[IBNBD_NAME_LEN];
	char key[IBTRS_KEY_NAME_LEN];
	struct ibnbd_srv_open __rcu *table[];
};

int ibnbd_srv_session_up(struct ibtrs_srv_session *ibtrs, const struct ibtrs_srv_client *c,
			 void **priv);
bool ibnbd_srv_session_name_allowed(const struct ibtrs_origin *from, const char *name,
				    const char **why);
void ibnbd_srv_session_lost(void *priv);
enum ibtrs_srv_left ibnbd_srv_session_down(struct ibtrs_srv_session *ibtrs, void *priv);
void ibnbd_srv_session_free(struct kref *kref);
struct ibnbd_srv_open *ibnbd_srv_session_find(struct ibnbd_srv_session *s, const char *name,
					      bool *unclaimed);
struct ibnbd_srv_open *ibnbd_srv_session_live(struct ibnbd_srv_session *s, u32 slot);
int ibnbd_srv_session_publish(struct ibnbd_srv_session *s, struct ibnbd_srv_open *open);
void ibnbd_srv_session_close(struct ibnbd_srv_session *s, u32 id, struct ibtrs_srv_op *op,
			     bool nowait);
bool ibnbd_srv_session_given_up(void *priv, u32 group);
void ibnbd_srv_session_give_up(void *priv, u32 group);
int ibnbd_srv_session_force_close(struct ibnbd_srv_open *open);
/* Runs when the last I/O of an open that was killed has ended. */
void ibnbd_srv_session_release_work(struct work_struct *work);

static inline void ibnbd_srv_session_get(struct ibnbd_srv_session *s)
{
	kref_get(&s->kref);
}

/* Any context. */
static inline void ibnbd_srv_session_put(struct ibnbd_srv_session *s)
{
	kref_put(&s->kref, ibnbd_srv_session_free);
}

/* The op->group of all ops for one device; 0 means none. */
static inline u32 ibnbd_srv_session_group(u32 id)
{
	return (id & IBNBD_EVENT_ID_MASK) + 1;
}

/*
 * The op->group of an op that the client may forget: no device has this group, so
 * ibnbd_srv_session_given_up() returns true.
 */
#define IBNBD_SRV_GROUP_NONE	(IBNBD_EVENT_ID_MASK + 2)

/* The open with this id, pinned by its I/O reference; NULL when there is none that takes I/O. */
static inline struct ibnbd_srv_open *ibnbd_srv_session_open_get(struct ibnbd_srv_session *s, u32 id)
{
	struct ibnbd_srv_open *open;

	guard(rcu)();
	open = rcu_dereference(s->table[id & s->mask]);
	if (open && (open->id != id || !percpu_ref_tryget_live(&open->ref)))
		open = NULL;
	return open;
}

#endif
