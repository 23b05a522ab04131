// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/slab.h>
#include "ibnbd/client/msg.h"

#define MSG_SESS_INFO_MS	3000

bool ibnbd_clt_msg_unreached(int err)
{
	return err == -ENOTCONN || err == -ECONNRESET || err == -ETIMEDOUT || err == -EINTR ||
	       err == -ENOMEM;
}

int ibnbd_clt_msg_sess_info(struct ibtrs_clt *clt, struct ibnbd_sess_info *out, const char **why)
{
	const struct ibnbd_sess_info offer = {
		.version	= IBNBD_PROTO_MAJOR,
		/* all that this client knows */
		.features	= IBNBD_FEAT_KNOWN,
	};
	struct ibnbd_wire_sess_info req, rsp;
	int err;

	*why = NULL;
	ibnbd_msg_sess_info_encode(&req, IBNBD_MSG_SESS_INFO, &offer);
	err = ibtrs_clt_call(clt, 0, IBTRS_READ, &req, sizeof(req), &rsp, sizeof(rsp),
			     MSG_SESS_INFO_MS);
	if (err)
		return err;
	return ibnbd_msg_sess_info_rsp_decode(&rsp, sizeof(rsp), offer.features, out, why);
}

int ibnbd_clt_msg_open(struct ibtrs_clt *clt, u32 link_gen, const char *name,
		       enum ibnbd_access access, u64 features, struct ibnbd_open_rsp *rsp,
		       unsigned int timeout_ms, struct ibnbd_open_refused *said, const char **why)
{
	const struct ibnbd_open m = { .access = access, .name = name };
	union {
		struct ibnbd_wire_open_rsp_dur rsp;
		struct ibnbd_wire_open_refused refused;
	} answer;
	u32 len = ibnbd_msg_open_room(features);
	struct ibnbd_wire_open req;
	int err;

	*why = NULL;
	err = ibnbd_msg_open_encode(&req, &m);
	if (err)
		return err;
	err = ibtrs_clt_call(clt, link_gen, IBTRS_READ, &req, sizeof(req), &answer, len,
			     timeout_ms);
	if (err)
		return err;
	if (features & IBNBD_FEAT_WORDS && ibnbd_msg_open_refused_decode(&answer, len, said)) {
		if (said->text[0])
			*why = said->text;
		return said->err;
	}
	return ibnbd_msg_open_rsp_decode(&answer, len, features, PAGE_SIZE, rsp, why);
}

int ibnbd_clt_msg_close(struct ibtrs_clt *clt, u32 link_gen, u32 device_id, bool nowait,
			unsigned int timeout_ms)
{
	struct ibnbd_wire_close req;

	ibnbd_msg_close_encode(&req, device_id, nowait);
	return ibtrs_clt_call(clt, link_gen, IBTRS_WRITE, &req, sizeof(req), NULL, 0, timeout_ms);
}
