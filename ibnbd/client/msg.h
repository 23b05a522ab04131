/* SPDX-License-Identifier: GPL-2.0-only */
/* The three messages other than I/O. Each waits for its answer, killable and for a limited time. */
#ifndef IBNBD_CLIENT_MSG_H
#define IBNBD_CLIENT_MSG_H

#include <ibtrs/clt.h>
#include "ibnbd/proto/msg.h"

/*
 * All return 0, the errno of the server, what ibtrs_clt_call() returned, or -EPROTO for an answer
 * that makes no sense, with the reason in *why. Otherwise *why is NULL, except for an OPEN that the
 * server refused in words: *why then points into @said, and is a text of the peer.
 *
 * @link_gen: the link on which the caller decided to send it, as ibtrs_clt_gen() counts. On another
 * link it is not sent, and the error is -ENOTCONN. SESS_INFO is for any link.
 */
int ibnbd_clt_msg_sess_info(struct ibtrs_clt *clt, struct ibnbd_sess_info *out, const char **why);
int ibnbd_clt_msg_open(struct ibtrs_clt *clt, u32 link_gen, const char *name,
		       enum ibnbd_access access, u64 features, struct ibnbd_open_rsp *rsp,
		       unsigned int timeout_ms, struct ibnbd_open_refused *said, const char **why);
/* True if @err says that we got no answer from the server; false if the server refused. */
bool ibnbd_clt_msg_unreached(int err);
int ibnbd_clt_msg_close(struct ibtrs_clt *clt, u32 link_gen, u32 device_id, bool nowait,
			unsigned int timeout_ms);

#endif
