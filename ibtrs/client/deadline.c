// SPDX-License-Identifier: GPL-2.0-only
/*
 * The steps of a handshake, and how long each wait for the server may take (decision 11).
 *
 * CM events, completions and other paths call these functions, in any context. handshake.c owns the
 * work and the timer and executes the steps.
 */
#include "ibtrs/client/deadline.h"
#include "ibtrs/client/session.h"
#include "ibtrs/logic/patience.h"

static struct ibtrs_patience deadline_patience(const struct ibtrs_clt_path *path)
{
	return (struct ibtrs_patience){
		.attempt	= READ_ONCE(path->retry.attempt),
		.connect_ms	= READ_ONCE(path->connect_ms),
		.first_done	= path->first_done,
		.others		= ibtrs_clt_is_up(path->clt),
		.ours		= path->ext,
	};
}

unsigned int ibtrs_clt_deadline_patience_ms(const struct ibtrs_clt_path *path)
{
	struct ibtrs_patience p = deadline_patience(path);

	return ibtrs_patience_ms(&p);
}

unsigned int ibtrs_clt_deadline_first_ms(const struct ibtrs_clt_path *path)
{
	struct ibtrs_patience p = deadline_patience(path);

	return ibtrs_patience_first_ms(&p);
}

void ibtrs_clt_deadline_phase(struct ibtrs_clt_path *path, enum ibtrs_clt_hs_phase phase,
			      unsigned int ms)
{
	unsigned long flags;

	spin_lock_irqsave(&path->hs.lock, flags);
	if (!path->hs.stopped) {
		WRITE_ONCE(path->hs.phase, phase);
		mod_delayed_work(path->clt->wq, &path->hs.deadline, msecs_to_jiffies(ms));
	}
	spin_unlock_irqrestore(&path->hs.lock, flags);
}

void ibtrs_clt_deadline_hasten(struct ibtrs_clt_path *path, unsigned int ms)
{
	struct delayed_work *deadline = &path->hs.deadline;
	unsigned long flags;

	spin_lock_irqsave(&path->hs.lock, flags);
	if (!path->hs.stopped && path->hs.phase == IBTRS_CLT_HS_FIRST_WORD &&
	    delayed_work_pending(deadline) &&
	    time_after(deadline->timer.expires, jiffies + msecs_to_jiffies(ms)))
		mod_delayed_work(path->clt->wq, deadline, msecs_to_jiffies(ms));
	spin_unlock_irqrestore(&path->hs.lock, flags);
}

void ibtrs_clt_deadline_step(struct ibtrs_clt_path *path, enum ibtrs_clt_hs_step step)
{
	unsigned long flags;

	spin_lock_irqsave(&path->hs.lock, flags);
	if (!path->hs.stopped) {
		cancel_delayed_work(&path->hs.deadline);
		set_bit(step, &path->hs.todo);
		queue_work(path->clt->wq, &path->hs.work);
	}
	spin_unlock_irqrestore(&path->hs.lock, flags);
}
