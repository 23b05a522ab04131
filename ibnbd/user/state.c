// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The state of a disk: the driver of logic/dev_sm.
 *
 * disk_post() alone writes it: state and event give the next state and a set of actions. What a
 * request meets in ibnbd_q_submit() is the gate of its queue, which follows from the state.
 *
 * Law L8: after a write was given up that the server may still execute, the disk takes no writes
 * until the server has opened it under another number, or has ended all that came over lost paths.
 */
#include "ibnbd/user/disk.h"

#define STATE_SWEEP_MS	100
#define STATE_SETTLE_MS	500

void disk_say(struct ibnbd_disk *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->reason, sizeof(d->reason), fmt, ap);
	va_end(ap);
}

void disk_remote(struct ibnbd_disk *d, enum ibnbd_open_event ev)
{
	d->remote = ibnbd_open_sm_step(d->remote, ev);
}

void disk_ask_later(struct ibnbd_disk *d, u32 ms)
{
	d->ask_at = disk_now() + ms;
}

/* ---- gates -------------------------------------------------------------- */

static enum disk_gate state_gate(const struct ibnbd_disk *d)
{
	if (ibnbd_dev_sm_submits(d->state))
		return disk_takes_writes(d) ? DISK_GATE_OPEN : DISK_GATE_NO_WRITES;
	return ibnbd_dev_sm_holds(d->state) ? DISK_GATE_HOLD : DISK_GATE_FAIL;
}

static void state_gates(struct ibnbd_disk *d, enum disk_gate gate)
{
	u32 i;

	for (i = 0; i < d->nr_qs; i++)
		disk_q_gate(&d->qs[i], gate);
}

/* ---- actions ------------------------------------------------------------ */

void disk_abort(struct ibnbd_disk *d)
{
	struct disk_q_given_up g = {};
	enum ibnbd_given_up up;
	u32 i;

	for (i = 0; i < d->nr_qs; i++)
		disk_q_abort(&d->qs[i], &g);
	up = !g.any ? IBNBD_GIVEN_UP_NOTHING : g.writes ? IBNBD_GIVEN_UP_WRITES :
							  IBNBD_GIVEN_UP_READS;
	if (up > d->at_large.given_up)
		d->at_large.given_up = up;
	/* What is on the wire of a path that dies is parked later. */
	d->sweep_at = g.left ? disk_now() + STATE_SWEEP_MS : 0;
}

static void state_terms(const struct ibnbd_disk *d, struct disk_terms *t)
{
	const struct disk_grant *g = &d->grant;
	bool ro = g->rsp.identity.flags & IBNBD_ID_F_READ_ONLY;

	*t = (struct disk_terms){
		.facts = {
			.nsectors			= g->lim.nsectors,
			.logical_block_size		= g->lim.logical_block_size,
			.max_discard_sectors		= g->lim.max_discard_sectors,
			.max_write_zeroes_sectors	= g->lim.max_write_zeroes_sectors,
		},
		.access		= ro ? IBNBD_ACCESS_RO : d->access,
		.device_id	= g->rsp.device_id,
		.max_bytes	= g->lim.max_hw_sectors << IBNBD_SECTOR_SHIFT,
		.version	= g->version,
		.keeps		= d->keeps,
		.cache		= g->lim.write_cache,
		.fua		= g->lim.fua,
		.unmap		= g->features & IBNBD_FEAT_ZEROES,
	};
}

/*
 * When keeping begins, earlier writes are missing from the log. It is dropped when another client
 * has written, because a replay would overwrite newer data; a loss is then reported instead (L26).
 */
static void state_keep(struct ibnbd_disk *d, const struct disk_grant *g)
{
	enum disk_keeps old = d->keeps, keeps = disk_judge_keeps(d, g);
	bool data = keeps == DISK_KEEPS_DATA;

	/* The writes up to now were not counted: the account assumes that there are some. */
	if (keeps && !old && d->opened)
		ibnbd_unflushed_wrote(&d->unflushed);
	d->keeps = keeps;
	if (data != (old == DISK_KEEPS_DATA) ||
	    ibnbd_remap_other_writer(&d->grant.rsp, &g->rsp))
		disk_kept_forget(d, data && ibnbd_unflushed_any(&d->unflushed));
}

/* Takes over the server's answer. Largest requests do not shrink: libibtrs sees to that. */
static void state_commit(struct ibnbd_disk *d, const struct disk_grant *g)
{
	bool anew = g->features & IBNBD_FEAT_IDENTITY &&
		    g->rsp.device_id != d->grant.rsp.device_id;
	struct disk_terms terms;
	u32 i;

	state_keep(d, g);
	d->grant = *g;
	d->opened++;
	if (anew)
		d->at_large.given_up = IBNBD_GIVEN_UP_NOTHING;
	else if (ibtrs_clt_settled(d->clt))
		d->at_large.given_up = ibnbd_given_up_ended(d->at_large.given_up);
	if (!disk_takes_writes(d))
		disk_ask_later(d, STATE_SETTLE_MS);
	state_terms(d, &terms);
	for (i = 0; i < d->nr_qs; i++)
		disk_q_terms(&d->qs[i], &terms);
}

/* A request that was held before, and has not ended since, counts as held all the time. */
static void state_arm(struct ibnbd_disk *d)
{
	struct disk_q_sum sum = { .held_since = disk_now() };
	u32 i;

	for (i = 0; i < d->nr_qs; i++) {
		disk_q_look(&d->qs[i], &sum);
		disk_q_hold(&d->qs[i], disk_now());
	}
	d->held_since = sum.held_since;
}

/*
 * From a state that holds, nothing is on the wire (judge.c). An open disk that is opened again
 * keeps its requests where they are.
 */
static void state_resume(struct ibnbd_disk *d, enum ibnbd_dev_state old)
{
	u32 i;

	for (i = 0; i < d->nr_qs && old != IBNBD_DEV_OPEN; i++)
		disk_q_readdress(&d->qs[i]);
	/* If the link is gone again, they wait for the next one. */
	ibtrs_clt_replay(d->clt, d->grant.ups);
	for (i = 0; i < d->nr_qs; i++)
		disk_q_resume(&d->qs[i]);
}

static void state_enter(struct ibnbd_disk *d, enum ibnbd_dev_state state)
{
	d->state = state;
	if (state == IBNBD_DEV_OPEN)
		disk_say(d, "%s", disk_takes_writes(d) ? "" :
			 "writes disabled: the server may still execute an aborted one");
	state_gates(d, state_gate(d));
}

/* The actions in the order of their bits. */
bool disk_post(struct ibnbd_disk *d, enum ibnbd_dev_event ev, const struct disk_grant *g)
{
	struct ibnbd_dev_step step = ibnbd_dev_sm_step(d->state, ev);
	enum ibnbd_dev_state old = d->state;

	if (!step.taken)
		return false;
	if (step.actions & IBNBD_DEV_DO_STOP)
		state_gates(d, DISK_GATE_HOLD);
	if (step.actions & IBNBD_DEV_DO_COMMIT)
		state_commit(d, g);
	state_enter(d, step.state);
	if (step.actions & IBNBD_DEV_DO_ARM)
		state_arm(d);
	if (step.actions & IBNBD_DEV_DO_FAIL)
		disk_abort(d);
	if (step.actions & IBNBD_DEV_DO_RESUME)
		state_resume(d, old);
	if (step.actions & IBNBD_DEV_DO_CLOSE)
		d->close_at = disk_now();
	return true;
}

void disk_lose(struct ibnbd_disk *d, const char *why)
{
	disk_remote(d, IBNBD_OPEN_EV_LOST);
	if (d->state != IBNBD_DEV_OPEN && d->state != IBNBD_DEV_REPLAYING)
		return;
	disk_say(d, "%s", why);
	disk_post(d, IBNBD_DEV_EV_LINK_DOWN, NULL);
}
