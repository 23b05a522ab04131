/* SPDX-License-Identifier: GPL-2.0-only */
/* The policy in force: what may this client do with this export? */
#ifndef IBNBD_SERVER_POLICY_H
#define IBNBD_SERVER_POLICY_H

#include <linux/rcupdate.h>
#include <ibtrs/srv.h>
#include "ibnbd/logic/policy.h"

struct ibnbd_srv_session;

/* A policy, and the text that it was parsed from. */
struct ibnbd_srv_policy {
	struct ibnbd_policy_rules rules;
	size_t len;
	char source[];
};

/* To be read under RCU, or under the lock of judge.c; NULL: there is none. */
extern struct ibnbd_srv_policy __rcu *ibnbd_srv_policy;

void ibnbd_srv_policy_of(const struct ibnbd_srv_session *s, const char *name,
			 struct ibnbd_policy_verdict *v);
void ibnbd_srv_policy_from(const struct ibnbd_srv_session *s, const struct ibtrs_origin *from,
			   const char *name, struct ibnbd_policy_verdict *v);

#endif
