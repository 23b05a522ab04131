/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#ifndef IBTRS_PROTO_REFUSE_H
#define IBTRS_PROTO_REFUSE_H

/*
 * A decoder ends with this when it refuses: sets @why, if the caller wants a reason, and returns
 * @err.
 */
static inline int refuse(const char **why, const char *text, int err)
{
	if (why)
		*why = text;
	return err;
}

#endif
