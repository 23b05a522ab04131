// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Codec of requests and of the keys that go with their replies (protocol 4, 5, 8.2). msg.c says
 * how the bytes of a peer are read, and what a refusal means.
 *
 * Called by the client's request path (encode) and the server's receive path (decode); no state, no
 * locks, any context.
 */
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"
#include "ibtrs/proto/refuse.h"

#define USR_MIN		4u		/* a type and its padding (E-15) */

/* Length of the fixed part of a request header; descriptors follow it in a read. */
static size_t io_hdr_size(bool read, bool fence)
{
	if (read)
		return fence ? sizeof(struct ibtrs_wire_read_fenced) :
			       sizeof(struct ibtrs_wire_read);
	return fence ? sizeof(struct ibtrs_wire_write_fenced) : sizeof(struct ibtrs_wire_write);
}

/* Transport header of a write. Arguments and return: as of ibtrs_msg_read_encode(). */
size_t ibtrs_msg_write_encode(void *buf, bool fence, u16 usr_len, u64 token)
{
	struct ibtrs_wire_write_fenced w = {
		.type		= cpu_to_le16(fence ? IBTRS_MSG_WRITE_FENCED : IBTRS_MSG_WRITE),
		.usr_len	= cpu_to_le16(usr_len),
		.token		= cpu_to_le64(token),
	};
	size_t size = io_hdr_size(false, fence);

	/* The plain header is the beginning of the fenced one. */
	memcpy(buf, &w, size);
	return size;
}

/**
 * ibtrs_msg_read_encode() - transport header of a read
 * @buf: %IBTRS_IO_HDR_MAX bytes, any alignment
 * @fence: the path has FENCE
 * @usr_len: length of the user's header
 * @token: of this submission, counts only with @fence
 * @need_inval: the server shall invalidate @desc's key; means nothing without @desc
 * @desc: where the data goes, NULL for a read without data
 *
 * Return: bytes written.
 */
size_t ibtrs_msg_read_encode(void *buf, bool fence, u16 usr_len, u64 token, bool need_inval,
			     const struct ibtrs_desc *desc)
{
	struct ibtrs_wire_read_fenced w = {
		.type		= cpu_to_le16(fence ? IBTRS_MSG_READ_FENCED : IBTRS_MSG_READ),
		.usr_len	= cpu_to_le16(usr_len),
		.flags		= cpu_to_le16(desc && need_inval ? IBTRS_READ_F_NEED_INVAL : 0),
		.sg_cnt		= cpu_to_le16(desc ? 1 : 0),
		.token		= cpu_to_le64(token),
	};
	size_t size = io_hdr_size(true, fence);

	memcpy(buf, &w, size);
	if (desc) {
		struct ibtrs_wire_desc d;

		ibtrs_msg_desc_encode(&d, desc);
		memcpy((u8 *)buf + size, &d, sizeof(d));
		size += sizeof(d);
	}
	return size;
}

/*
 * Decodes what a read has beyond the common part. The token and the descriptor are in @h before a
 * check of the descriptor refuses, so that the caller can reply.
 */
static int io_decode_read(const u8 *buf, size_t len, const struct ibtrs_limits *l,
			  struct ibtrs_io_hdr *h, const char **why)
{
	size_t size = io_hdr_size(true, l->fence);
	struct ibtrs_wire_read_fenced w;
	struct ibtrs_wire_desc d;

	memcpy(&w, buf, size);
	if (l->fence)
		h->token = le64_to_cpu(w.token);
	if (le16_to_cpu(w.sg_cnt) > 1)
		return refuse(why, "read has more than one descriptor", -EINVAL);
	if (!w.sg_cnt)
		return h->data_len ?
			       refuse(why, "read asks for data and has no descriptor", -EINVAL) :
			       0;
	if (len < size + sizeof(d))
		return refuse(why, "descriptor of a read crosses the end of the chunk", -EPROTO);
	memcpy(&d, buf + size, sizeof(d));
	ibtrs_msg_desc_decode(&d, &h->desc);
	h->has_desc = true;
	h->need_inval = le16_to_cpu(w.flags) & IBTRS_READ_F_NEED_INVAL;
	if (!h->desc.len || !h->data_len)
		return refuse(why, "read has a descriptor and no data", -EINVAL);
	if (h->desc.len < h->data_len)
		return refuse(why, "descriptor of a read is shorter than its data", -EINVAL);
	return 0;
}

/**
 * ibtrs_msg_io_decode() - transport header of a request (E-12, E-14..E-17)
 * @buf: private copy of the chunk's bytes from @off on
 * @len: bytes in @buf: the rest of the chunk, or %IBTRS_IO_HDR_MAX
 * @off: from the immediate
 * @l: numbers of the path
 * @h: result: need_inval only with has_desc; after 0 a read has a descriptor exactly if it has data
 * @why: reason of a refusal
 *
 * Return: 0; -EPROTO: the header cannot be understood, close the path; -EINVAL: it is understood,
 * but refused: reply with the error, @h holds what the reply needs.
 */
int ibtrs_msg_io_decode(const void *buf, size_t len, u32 off, const struct ibtrs_limits *l,
			struct ibtrs_io_hdr *h, const char **why)
{
	struct ibtrs_wire_write_fenced w = { 0 };
	bool fenced;
	u16 type;
	int err;

	memset(h, 0, sizeof(*h));
	if (off >= l->chunk_size)
		return refuse(why, "request header starts beyond the chunk", -EPROTO);
	if (len > l->chunk_size - off)
		len = l->chunk_size - off;
	if (len < sizeof(struct ibtrs_wire_write))
		return refuse(why, "request header crosses the end of the chunk", -EPROTO);
	memcpy(&w, buf, sizeof(struct ibtrs_wire_write));

	type = le16_to_cpu(w.type);
	h->read = type == IBTRS_MSG_READ || type == IBTRS_MSG_READ_FENCED;
	fenced = type == IBTRS_MSG_WRITE_FENCED || type == IBTRS_MSG_READ_FENCED;
	if (!h->read && type != IBTRS_MSG_WRITE && type != IBTRS_MSG_WRITE_FENCED)
		return refuse(why, "request header has an unknown type", -EPROTO);
	if (fenced != l->fence)
		return refuse(why,
			      fenced ? "fenced request on a path without FENCE" :
				       "request without a token on a path with FENCE",
			      -EPROTO);
	if (len < io_hdr_size(h->read, l->fence))
		return refuse(why, "request header crosses the end of the chunk", -EPROTO);

	h->usr_len = le16_to_cpu(w.usr_len);
	if (h->usr_len < USR_MIN)
		return refuse(why, "user header is shorter than 4 bytes", -EPROTO);
	if (h->usr_len > l->max_hdr_size || h->usr_len > off)
		return refuse(why, "user header is longer than there is room for", -EPROTO);
	h->data_len = off - h->usr_len;

	if (h->read) {
		err = io_decode_read(buf, len, l, h, why);
		if (err)
			return err;
	} else if (l->fence) {
		memcpy(&w, buf, sizeof(w));
		h->token = le64_to_cpu(w.token);
	}
	if (h->data_len > l->max_io_size)
		return refuse(why, "request has more data than the maximum I/O size", -EINVAL);
	return 0;
}

void ibtrs_msg_rkey_encode(struct ibtrs_wire_rkey_rsp *w, u16 slot, u32 rkey)
{
	w->type = cpu_to_le16(IBTRS_MSG_RKEY_RSP);
	w->buf_id = cpu_to_le16(slot);
	w->rkey = cpu_to_le32(rkey);
}

/**
 * ibtrs_msg_rkey_decode() - the new key of a chunk (E-37)
 * @buf: received payload
 * @len: bytes received
 * @slot: from the immediate of the same message
 * @rkey: the key
 * @why: reason of a refusal
 *
 * Return: 0 or -EPROTO.
 */
int ibtrs_msg_rkey_decode(const void *buf, size_t len, u32 slot, u32 *rkey, const char **why)
{
	struct ibtrs_wire_rkey_rsp w;

	if (len < sizeof(w))
		return refuse(why, "key response is too short", -EPROTO);
	memcpy(&w, buf, sizeof(w));
	if (le16_to_cpu(w.type) != IBTRS_MSG_RKEY_RSP)
		return refuse(why, "another message came in place of the key response", -EPROTO);
	if (le16_to_cpu(w.buf_id) != slot)
		return refuse(why, "key response names another slot than its immediate", -EPROTO);
	*rkey = le32_to_cpu(w.rkey);
	return 0;
}

/*
 * The message that stands behind the data of a trial (protocol.md 8.4). @desc: where the server
 * shall write the data back; as long as the data.
 */
void ibtrs_trial_encode(struct ibtrs_wire_trial *w, const struct ibtrs_desc *desc)
{
	*w = (struct ibtrs_wire_trial){ .type = cpu_to_le16(IBTRS_MSG_TRIAL) };
	ibtrs_msg_desc_encode(&w->desc, desc);
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
	if (le16_to_cpu(w->type) != IBTRS_MSG_TRIAL)
		return refuse(why, "a trial with a message of another type", -EPROTO);
	ibtrs_msg_desc_decode(&w->desc, desc);
	if (!off || off > l->max_io_size)
		return refuse(why, "a trial without data, or with more than the maximum I/O size",
			      -EPROTO);
	if (desc->len != off)
		return refuse(why, "a trial whose descriptor is not as long as its data", -EPROTO);
	*why = NULL;
	return 0;
}
