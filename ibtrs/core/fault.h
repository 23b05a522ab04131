/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults on demand: /sys/kernel/debug/ibtrs/{client,server}/POINT, for tests
 * (docs/sysfs.md). Only modules built with TESTS=1 have them; there each point costs a patched-out
 * jump while no rule is armed, elsewhere nothing.
 */
#ifndef IBTRS_CORE_FAULT_H
#define IBTRS_CORE_FAULT_H

#include <linux/delay.h>
#include <linux/jump_label.h>
#include <linux/minmax.h>
#include <linux/types.h>

struct ib_qp_cap;

enum ibtrs_fault_point {
	IBTRS_FAULT_CLT_SUBMIT,		/* a request is about to be posted */
	IBTRS_FAULT_CLT_COMPLETION,	/* an answer has arrived */
	IBTRS_FAULT_CLT_CM,		/* an event of the connection manager */
	IBTRS_FAULT_CLT_HEARTBEAT,	/* a heartbeat, or the answer to one, is about to be sent */
	IBTRS_FAULT_CLT_MR,		/* memory is to be registered */
	IBTRS_FAULT_CLT_DRAIN,		/* the queue pair of a connection is to be drained */
	/* the user of the transport is about to act upon news of the link */
	IBTRS_FAULT_CLT_NEWS,
	IBTRS_FAULT_SRV_REQUEST,	/* a request goes to the user of the transport */
	IBTRS_FAULT_SRV_REPLY,		/* a request was executed, its reply is to be sent */
	IBTRS_FAULT_SRV_CM,
	IBTRS_FAULT_SRV_HEARTBEAT,
	IBTRS_FAULT_SRV_MR,
	IBTRS_FAULT_SRV_DRAIN,
	IBTRS_FAULT_POINTS,
};

enum ibtrs_fault_action {
	IBTRS_FAULT_NONE,
	IBTRS_FAULT_ERROR,		/* the event fails with @err */
	IBTRS_FAULT_DELAY,		/* the event happens @ms later */
	IBTRS_FAULT_DROP,		/* the event does not happen, silently */
	/* from now on the connection of the request sends nothing, and completes nothing */
	IBTRS_FAULT_STUCK,
};

/**
 * struct ibtrs_fault - what is to go wrong now
 * @action: NONE nearly always
 * @err: negative errno, with ERROR
 * @ms: with DELAY
 */
struct ibtrs_fault {
	enum ibtrs_fault_action action;
	int err;
	u32 ms;
};

#ifdef IBTRS_TESTS
DECLARE_STATIC_KEY_FALSE(ibtrs_fault_key);	/* true while any point is armed */

#define ibtrs_fault_armed()	static_branch_unlikely(&ibtrs_fault_key)

struct ibtrs_fault ibtrs_fault_look(enum ibtrs_fault_point p, const char *session,
				    const char *path);
/* Would mlx5 make this send queue, if it had as many units as debugfs says (0: any number)? */
bool ibtrs_fault_sq_fits(const struct ib_qp_cap *cap);
void ibtrs_fault_init(void);		/* without debugfs there are no files, and so no faults */
void ibtrs_fault_exit(void);
#else
#define ibtrs_fault_armed()		false
#define ibtrs_fault_look(p, s, path)	((struct ibtrs_fault){})

static inline bool ibtrs_fault_sq_fits(const struct ib_qp_cap *cap)
{
	return true;
}

static inline void ibtrs_fault_init(void) {}
static inline void ibtrs_fault_exit(void) {}
#endif

/* Is something to go wrong here and now? Any context. */
static inline struct ibtrs_fault ibtrs_fault_at(enum ibtrs_fault_point p, const char *session,
						const char *path)
{
	if (ibtrs_fault_armed())
		return ibtrs_fault_look(p, session, path);
	return (struct ibtrs_fault){};
}

/* For callers that may sleep and can fail: sleeps on DELAY, then returns 0 or the errno. */
static inline int ibtrs_fault_wait(enum ibtrs_fault_point p, const char *session, const char *path)
{
	struct ibtrs_fault f = ibtrs_fault_at(p, session, path);

	if (f.action == IBTRS_FAULT_DELAY)
		msleep(f.ms);
	return f.err;
}

/*
 * For callers that may not sleep: spins on DELAY, for 100 ms at most. The caller carries out any
 * other fault.
 */
static inline struct ibtrs_fault ibtrs_fault_spin(enum ibtrs_fault_point p, const char *session,
						  const char *path)
{
	struct ibtrs_fault f = ibtrs_fault_at(p, session, path);

	if (f.action == IBTRS_FAULT_DELAY)
		mdelay(min(f.ms, 100u));
	return f;
}

#endif
