/* SPDX-License-Identifier: GPL-2.0-only */
/* The three messages beside I/O, each a bounded and killable question. */
#ifndef IBNBD_CLIENT_MSG_H
#define IBNBD_CLIENT_MSG_H

#include <ibtrs/clt.h>
#include "ibnbd/proto/msg.h"

/*
 * All: 0, the server's errno, what ibtrs_clt_call() says, or -EPROTO for an answer that makes no
 * sense, with *why. Otherwise *why is NULL, but for an OPEN that the server refused in words: *why
 * is in @said then, and is a peer's text.
 */
int ibnbd_clt_msg_sess_info(struct ibtrs_clt *clt, struct ibnbd_sess_info *out, const char **why);
int ibnbd_clt_msg_open(struct ibtrs_clt *clt, const char *name, enum ibnbd_access access,
		       u64 features, struct ibnbd_open_rsp *rsp, unsigned int timeout_ms,
		       struct ibnbd_open_refused *said, const char **why);
/* Did the server say no, or did we not reach it? */
bool ibnbd_clt_msg_unreached(int err);
int ibnbd_clt_msg_close(struct ibtrs_clt *clt, u32 device_id, bool nowait, unsigned int timeout_ms);

#endif
