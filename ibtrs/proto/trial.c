// SPDX-License-Identifier: GPL-2.0-only
#include "ibtrs/proto/trial.h"

/**
 * ibtrs_trial_encode() - the message that stands behind the data of a trial
 * @w: result
 * @desc: where the server shall write the data back; as long as the data
 */
void ibtrs_trial_encode(struct ibtrs_wire_trial *w, const struct ibtrs_desc *desc)
{
	*w = (struct ibtrs_wire_trial){
		.type		= cpu_to_le16(IBTRS_MSG_TRIAL),
		.desc.addr	= cpu_to_le64(desc->addr),
		.desc.rkey	= cpu_to_le32(desc->rkey),
		.desc.len	= cpu_to_le32(desc->len),
	};
}

/**
 * ibtrs_trial_decode() - what a client asks for with a trial
 * @w: private copy of the chunk's bytes at @off
 * @off: from the immediate: bytes of data in front of the message
 * @l: numbers of the path
 * @desc: result
 * @why: reason of a refusal
 *
 * Return: 0, or -EPROTO: close the path.
 */
int ibtrs_trial_decode(const struct ibtrs_wire_trial *w, u32 off, const struct ibtrs_limits *l,
		       struct ibtrs_desc *desc, const char **why)
{
	*why = "a trial with a message of another type";
	if (le16_to_cpu(w->type) != IBTRS_MSG_TRIAL)
		return -EPROTO;
	ibtrs_msg_desc_decode(&w->desc, desc);
	*why = "a trial without data, or with more than the maximum I/O size";
	if (!off || off > l->max_io_size)
		return -EPROTO;
	*why = "a trial whose descriptor is not as long as its data";
	if (desc->len != off)
		return -EPROTO;
	*why = NULL;
	return 0;
}
