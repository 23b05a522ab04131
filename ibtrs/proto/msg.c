// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Codec of the messages that make a path: CONN_REQ, CONN_RSP, INFO_REQ, INFO_RSP (protocol 2.2 ..
 * 2.4, protocol 8.1). The codec of requests is in msg_io.c.
 *
 * Called by client and server handshakes; no state, no locks, any context.
 *
 * Everything that comes from a peer is copied into a local struct first: private data of the CM and
 * headers inside a chunk have no alignment, and a byte that is looked at twice must not change in
 * between. Length is checked before anything else.
 *
 * On refusal a decoder returns a negative errno and a reason for the log. The declaration in msg.h
 * says what the caller then does (reject, reply, close the path). Numbers are refused only if they
 * cannot be worked with. Reserved bits and bytes are ignored, except in CONN_RSP.flags, where an
 * unknown bit would mean a mode of operation that this code does not know.
 */
#include <ibtrs/words.h>
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"
#include "ibtrs/proto/refuse.h"

#define HDR_MIN		288u		/* OPEN 264, READ 8, descriptor 16 (E-34) */
#define IO_MIN		4096u

static const u8 req_ext_magic[2] = { 'I', 'X' };
static const u8 rsp_ext_magic[4] = { 'I', 'B', 'T', 'X' };

static bool version_ok(__le16 version)
{
	return le16_to_cpu(version) >> 8 == IBTRS_PROTO_MAJOR;
}

/* Private data of a CM REQ. If @m offers no extension, every byte is as in RTRS 2.0. */
void ibtrs_msg_conn_req_encode(struct ibtrs_wire_conn_req *w, const struct ibtrs_conn_req *m)
{
	memset(w, 0, sizeof(*w));
	w->magic = cpu_to_le16(IBTRS_MAGIC);
	w->version = cpu_to_le16(IBTRS_PROTO_VER);
	w->cid = cpu_to_le16(m->cid);
	w->cid_num = cpu_to_le16(m->cid_num);
	w->recon_cnt = cpu_to_le16(m->recon_cnt);
	memcpy(w->path_uuid, m->path_uuid, sizeof(w->path_uuid));
	memcpy(w->session_uuid, m->session_uuid, sizeof(w->session_uuid));
	if (m->first_conn)
		w->first_conn = IBTRS_REQ_F_FIRST_CONN;
	if (m->ext & IBTRS_EXT_KNOWN) {
		w->ext_features = m->ext & IBTRS_EXT_KNOWN;
		memcpy(w->ext_magic, req_ext_magic, sizeof(w->ext_magic));
	}
}

/**
 * ibtrs_msg_conn_req_decode() - decode the connection request of a client
 * @buf: private data of a CM REQ
 * @len: its length; longer than the message when the transport pads it
 * @max_cons: connections that a path may have
 * @m: result; its ext is valid after a refusal, too, and 0 for a peer of another protocol
 * @why: reason of a refusal
 *
 * Checks E-1, E-2. Return: 0 or -ECONNRESET.
 */
int ibtrs_msg_conn_req_decode(const void *buf, size_t len, u32 max_cons, struct ibtrs_conn_req *m,
			      const char **why)
{
	struct ibtrs_wire_conn_req w;

	memset(m, 0, sizeof(*m));
	if (len < sizeof(w))
		return refuse(why, "connection request is too short", -ECONNRESET);
	memcpy(&w, buf, sizeof(w));
	if (le16_to_cpu(w.magic) != IBTRS_MAGIC)
		return refuse(why, "connection request has another magic number: not this protocol",
			      -ECONNRESET);
	if (!version_ok(w.version))
		return refuse(why, "connection request has another major version of the protocol",
			      -ECONNRESET);

	if (!memcmp(w.ext_magic, req_ext_magic, sizeof(w.ext_magic)))
		m->ext = w.ext_features & IBTRS_EXT_KNOWN;
	m->cid = le16_to_cpu(w.cid);
	m->cid_num = le16_to_cpu(w.cid_num);
	m->recon_cnt = le16_to_cpu(w.recon_cnt);
	if (m->cid_num > max_cons || m->cid_num > IBTRS_MAX_CONS)
		return refuse(why, "path has more connections than allowed here", -ECONNRESET);
	if (m->cid >= m->cid_num)
		return refuse(why, "connection id is not below the number of connections",
			      -ECONNRESET);
	memcpy(m->path_uuid, w.path_uuid, sizeof(m->path_uuid));
	memcpy(m->session_uuid, w.session_uuid, sizeof(m->session_uuid));
	m->first_conn = w.first_conn & IBTRS_REQ_F_FIRST_CONN;
	return 0;
}

/* Private data of a CM REP or REJ. If @m->err is set, only the error is encoded. */
void ibtrs_msg_conn_rsp_encode(struct ibtrs_wire_conn_rsp *w, const struct ibtrs_conn_rsp *m)
{
	memset(w, 0, sizeof(*w));
	w->magic = cpu_to_le16(IBTRS_MAGIC);
	w->version = cpu_to_le16(IBTRS_PROTO_VER);
	if (m->err) {
		w->err = cpu_to_le16((u16)ibtrs_errno_said(m->err));
		return;
	}
	w->queue_depth = cpu_to_le16((u16)m->limits.queue_depth);
	w->max_io_size = cpu_to_le32(m->limits.max_io_size);
	w->max_hdr_size = cpu_to_le32(m->limits.max_hdr_size);
	if (m->limits.new_rkey)
		w->flags = cpu_to_le32(IBTRS_RSP_F_NEW_RKEY);
	if (m->ext & IBTRS_EXT_KNOWN) {
		w->ext_features = cpu_to_le32(m->ext & IBTRS_EXT_KNOWN);
		memcpy(w->ext_magic, rsp_ext_magic, sizeof(w->ext_magic));
	}
}

/* E-34, E-35: can this client work with the numbers that the server announces? */
static int conn_rsp_check(const struct ibtrs_limits *m, u32 flags, const char **why)
{
	if (!m->queue_depth)
		return refuse(why, "server announces a queue depth of 0", -EPROTO);
	if (m->max_hdr_size < HDR_MIN || m->max_hdr_size > IBTRS_MAX_HDR)
		return refuse(why, "server announces a header size outside 288 bytes .. 1 MiB",
			      -EPROTO);
	if (m->max_io_size < IO_MIN)
		return refuse(why, "server announces a maximum I/O size below 4096", -EPROTO);
	if (m->chunk_size < m->max_io_size)
		return refuse(why, "server announces an impossible chunk size", -EPROTO);
	if (ibtrs_bits(m->queue_depth) + ibtrs_bits(m->chunk_size) > IBTRS_IMM_PAYLOAD_BITS)
		return refuse(why,
			      "queue depth and chunk size of the server do not fit the immediate",
			      -EPROTO);
	if (flags & ~(u32)IBTRS_RSP_F_NEW_RKEY)
		return refuse(why, "server works in a mode that is not known here", -EPROTO);
	return 0;
}

/**
 * ibtrs_msg_conn_rsp_decode() - the server's answer to one connection request
 * @buf: private data of a CM REP (or REJ)
 * @len: its length
 * @reject: the answer came in a REJ
 * @cid0: it answers cid 0, whose numbers are valid for the path and are checked (E-34, E-35); the
 *	caller compares new_rkey and ext of the other answers with it, and masks ext with its offer
 * @m: result; of a reject only its err, always negative, whatever the peer sent
 * @why: reason of a refusal
 *
 * Return: 0, -ECONNRESET (not this protocol, or an error inside an accept), -EPROTO (numbers that
 * cannot be worked with).
 */
int ibtrs_msg_conn_rsp_decode(const void *buf, size_t len, bool reject, bool cid0,
			      struct ibtrs_conn_rsp *m, const char **why)
{
	struct ibtrs_wire_conn_rsp w;

	if (len < sizeof(w))
		return refuse(why, "answer to the connection request is too short", -ECONNRESET);
	memcpy(&w, buf, sizeof(w));
	if (le16_to_cpu(w.magic) != IBTRS_MAGIC)
		return refuse(why, "answer has another magic number: not this protocol",
			      -ECONNRESET);
	if (!version_ok(w.version))
		return refuse(why, "answer has another major version of the protocol", -ECONNRESET);

	memset(m, 0, sizeof(*m));
	m->err = (s16)le16_to_cpu(w.err);
	if (reject) {
		m->err = ibtrs_errno_said(m->err);
		return 0;
	}
	if (m->err)
		return refuse(why, "server accepted the connection and reported an error at once",
			      -ECONNRESET);
	m->limits.queue_depth = le16_to_cpu(w.queue_depth);
	m->limits.max_io_size = le32_to_cpu(w.max_io_size);
	m->limits.max_hdr_size = le32_to_cpu(w.max_hdr_size);
	m->limits.chunk_size = m->limits.max_io_size + m->limits.max_hdr_size;
	m->limits.new_rkey = le32_to_cpu(w.flags) & IBTRS_RSP_F_NEW_RKEY;
	if (!memcmp(w.ext_magic, rsp_ext_magic, sizeof(w.ext_magic)))
		m->ext = le32_to_cpu(w.ext_features) & IBTRS_EXT_KNOWN;
	return cid0 ? conn_rsp_check(&m->limits, le32_to_cpu(w.flags), why) : 0;
}

/**
 * ibtrs_msg_name_check() - is this a valid name of a session?
 * @name: text, not NUL terminated
 * @len: its length
 * @why: reason of a refusal
 *
 * The name becomes a directory in sysfs on both sides and a path component on the server, and is
 * written to the log as it is.
 *
 * Return: 0 or -EINVAL.
 */
int ibtrs_msg_name_check(const char *name, size_t len, const char **why)
{
	size_t i, n;

	if (!len)
		return refuse(why, "session name is empty", -EINVAL);
	if (len > IBTRS_NAME_LEN - 1)
		return refuse(why, "session name is longer than 254 bytes", -EINVAL);
	for (i = 0; i < len; i += n) {
		n = ibtrs_words_char(name + i, len - i);
		if (name[i] == '/' || name[i] == '.')
			return refuse(why, "session name contains '/' or '.'", -EINVAL);
		if (!n)
			return refuse(why,
				      "session name contains a control or direction character, or is no UTF-8",
				      -EINVAL);
	}
	return 0;
}

/*
 * @name: vetted by ibtrs_msg_name_check(); what does not fit is cut, so that the message is well
 * formed in any case.
 */
void ibtrs_msg_info_req_encode(struct ibtrs_wire_info_req *w, const char *name)
{
	memset(w, 0, sizeof(*w));
	w->type = cpu_to_le16(IBTRS_MSG_INFO_REQ);
	memcpy(w->name, name, strnlen(name, IBTRS_NAME_LEN - 1));
}

/**
 * ibtrs_msg_info_req_decode() - decode the session name from the client
 * @buf: received message, the caller's own
 * @len: bytes received
 * @name: the name, inside @buf, NUL terminated
 * @why: reason of a refusal
 *
 * Return: 0, -EPROTO (malformed, E-7) or -EINVAL (a name that cannot be used, E-8).
 */
int ibtrs_msg_info_req_decode(const void *buf, size_t len, const char **name, const char **why)
{
	const char *s = (const char *)buf + offsetof(struct ibtrs_wire_info_req, name);
	__le16 type;
	size_t n;
	int err;

	if (len < sizeof(struct ibtrs_wire_info_req))
		return refuse(why, "info request is too short", -EPROTO);
	memcpy(&type, buf, sizeof(type));
	if (le16_to_cpu(type) != IBTRS_MSG_INFO_REQ)
		return refuse(why, "another message came in place of the info request", -EPROTO);
	n = strnlen(s, IBTRS_NAME_LEN);
	if (n == IBTRS_NAME_LEN)
		return refuse(why, "session name has no end", -EPROTO);
	err = ibtrs_msg_name_check(s, n, why);
	if (!err)
		*name = s;
	return err;
}

void ibtrs_msg_desc_encode(struct ibtrs_wire_desc *w, const struct ibtrs_desc *d)
{
	w->addr = cpu_to_le64(d->addr);
	w->rkey = cpu_to_le32(d->rkey);
	w->len = cpu_to_le32(d->len);
}

void ibtrs_msg_desc_decode(const struct ibtrs_wire_desc *w, struct ibtrs_desc *d)
{
	d->addr = le64_to_cpu(w->addr);
	d->rkey = le32_to_cpu(w->rkey);
	d->len = le32_to_cpu(w->len);
}

/* @w has room for ibtrs_msg_info_rsp_size(@sg_cnt) bytes, all of which are written. */
void ibtrs_msg_info_rsp_encode(struct ibtrs_wire_info_rsp *w, const struct ibtrs_desc *desc,
			       u16 sg_cnt, u32 life)
{
	u16 i;

	w->type = cpu_to_le16(IBTRS_MSG_INFO_RSP);
	w->sg_cnt = cpu_to_le16(sg_cnt);
	w->life = cpu_to_le32(life);
	for (i = 0; i < sg_cnt; i++)
		ibtrs_msg_desc_encode(&w->desc[i], &desc[i]);
}

/**
 * ibtrs_msg_info_rsp_decode() - decode the list of chunks from the server
 * @buf: received message
 * @len: bytes received
 * @sg_cnt: descriptors that follow the 8-byte head, all within @len; chunkmap checks the layout
 * @life: life of the session; has a meaning only on a path with FENCE
 * @why: reason of a refusal
 *
 * Return: 0 or -EPROTO.
 */
int ibtrs_msg_info_rsp_decode(const void *buf, size_t len, u16 *sg_cnt, u32 *life,
			      const char **why)
{
	struct ibtrs_wire_info_rsp w;

	if (len < sizeof(w))
		return refuse(why, "info response is too short", -EPROTO);
	memcpy(&w, buf, sizeof(w));
	if (le16_to_cpu(w.type) != IBTRS_MSG_INFO_RSP)
		return refuse(why, "another message came in place of the info response", -EPROTO);
	if (len < ibtrs_msg_info_rsp_size(le16_to_cpu(w.sg_cnt)))
		return refuse(why, "info response ends before its last descriptor", -EPROTO);
	*sg_cnt = le16_to_cpu(w.sg_cnt);
	*life = le32_to_cpu(w.life);
	return 0;
}

/*
 * Refusals with words (protocol 8.5): in the CM REJ, and in place of INFO_RSP. Pure.
 *
 * The last byte of a text is its terminator: decoders ignore what a peer put there. So a text that
 * was received fits unchanged into a message of the same kind.
 */

/*
 * A refusal in the CM REJ (protocol 2.3, 8.5). @ext: what the client offered; without WORDS every
 * byte is as in RTRS 2.0 and @text is not sent. Return: length of the message.
 */
size_t ibtrs_msg_conn_refused_encode(struct ibtrs_wire_conn_refused *w, int err, u8 ext,
				     const char *text)
{
	const struct ibtrs_conn_rsp rsp = { .err = err };

	memset(w, 0, sizeof(*w));
	ibtrs_msg_conn_rsp_encode(&w->rsp, &rsp);
	if (!(ext & IBTRS_EXT_WORDS))
		return sizeof(w->rsp);
	w->rsp.ext_features = cpu_to_le32(IBTRS_EXT_WORDS);
	memcpy(w->rsp.ext_magic, rsp_ext_magic, sizeof(w->rsp.ext_magic));
	ibtrs_words_copy((char *)w->text, sizeof(w->text), text, strlen(text));
	return sizeof(*w);
}

/**
 * ibtrs_msg_conn_refused_words() - the words of a refusal (E-51)
 * @buf: private data of a CM REJ that ibtrs_msg_conn_rsp_decode() understood
 * @len: its length
 * @text: result, %IBTRS_WORDS_LEN bytes, printable and terminated
 *
 * Return: true if the refusal has words.
 */
bool ibtrs_msg_conn_refused_words(const void *buf, size_t len, char *text)
{
	struct ibtrs_wire_conn_refused w;

	text[0] = 0;
	if (len < sizeof(w))
		return false;
	memcpy(&w, buf, sizeof(w));
	if (memcmp(w.rsp.ext_magic, rsp_ext_magic, sizeof(w.rsp.ext_magic)) ||
	    !(le32_to_cpu(w.rsp.ext_features) & IBTRS_EXT_WORDS))
		return false;
	return ibtrs_words_copy(text, IBTRS_WORDS_LEN, w.text, sizeof(w.text) - 1) > 0;
}

/*
 * INFO_REFUSED, with a negative errno, or AUTH_VERDICT, where 0 lets the client in (protocol 8.6).
 * @text: why, in words.
 */
void ibtrs_msg_verdict_encode(struct ibtrs_wire_verdict *w, enum ibtrs_msg_type type, int err,
			      const char *text)
{
	memset(w, 0, sizeof(*w));
	w->type = cpu_to_le16(type);
	w->err = cpu_to_le16(err ? (u16)-ibtrs_errno_said(err) : 0);
	ibtrs_words_copy((char *)w->text, sizeof(w->text), text, strlen(text));
}

/**
 * ibtrs_msg_info_refused_decode() - decode a refusal in place of INFO_RSP (E-51)
 * @buf: answer, where WORDS was accepted
 * @len: its length
 * @err: result, always a negative errno, if true is returned
 * @text: result, %IBTRS_WORDS_LEN bytes, printable and terminated
 *
 * Return: true: the answer is a refusal. false: it is not, go on with ibtrs_msg_info_rsp_decode().
 */
bool ibtrs_msg_info_refused_decode(const void *buf, size_t len, int *err, char *text)
{
	struct ibtrs_wire_verdict w;

	if (len < sizeof(w))
		return false;
	memcpy(&w, buf, sizeof(w));
	if (le16_to_cpu(w.type) != IBTRS_MSG_INFO_REFUSED)
		return false;
	*err = ibtrs_errno_said(-(int)le16_to_cpu(w.err));
	ibtrs_words_copy(text, IBTRS_WORDS_LEN, w.text, sizeof(w.text) - 1);
	return true;
}
