// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every decoder of the transport. Byte 0 selects it, bytes 1..8 are its parameters, the rest is the
 * message, decoded from an allocation of exactly its length. Properties: numbers in range as msg.h
 * promises, a reason with each refusal, and where an encoder exists, that encoding the result and
 * decoding it again changes nothing.
 */
#include <stdlib.h>
#include "ibtrs/proto/msg.h"

#define REQUIRE(cond)	do { if (!(cond)) __builtin_trap(); } while (0)

static void conn_req(const u8 *buf, size_t len, u32 max_cons)
{
	struct ibtrs_conn_req m, again;
	struct ibtrs_wire_conn_req w;
	const char *why = NULL;
	int err = ibtrs_msg_conn_req_decode(buf, len, max_cons, &m, &why);

	REQUIRE(err == 0 || err == -ECONNRESET);
	REQUIRE(!err == !why);
	if (err)
		return;
	REQUIRE(m.cid < m.cid_num && m.cid_num <= max_cons && m.cid_num <= IBTRS_MAX_CONS);
	REQUIRE(!(m.ext & ~IBTRS_EXT_KNOWN));
	memset(&w, 0xff, sizeof(w));
	ibtrs_msg_conn_req_encode(&w, &m);
	REQUIRE(!w.cma_version && !w.ip_version);
	REQUIRE(!ibtrs_msg_conn_req_decode(&w, sizeof(w), max_cons, &again, NULL));
	REQUIRE(!memcmp(&m, &again, sizeof(m)));
}

static void conn_rsp(const u8 *buf, size_t len, bool reject, bool cid0)
{
	struct ibtrs_conn_rsp m, again;
	struct ibtrs_wire_conn_rsp w;
	const char *why = NULL;
	int err = ibtrs_msg_conn_rsp_decode(buf, len, reject, cid0, &m, &why);

	REQUIRE(err == 0 || err == -ECONNRESET || (err == -EPROTO && cid0 && !reject));
	REQUIRE(!err == !why);
	if (err)
		return;
	REQUIRE(reject ? m.err < 0 && m.err >= -IBTRS_ERRNO_MAX : m.err == 0);
	REQUIRE(!(m.ext & ~(u32)IBTRS_EXT_KNOWN));
	if (cid0 && !reject) {
		const struct ibtrs_limits *l = &m.limits;
		u64 chunk = (u64)l->max_io_size + l->max_hdr_size;

		REQUIRE(l->queue_depth && l->max_io_size >= 4096 && l->max_hdr_size >= 288 &&
			l->max_hdr_size <= IBTRS_MAX_HDR && l->chunk_size == chunk);
		REQUIRE(ibtrs_bits(chunk) + ibtrs_bits(l->queue_depth) <= 28);
	}
	memset(&w, 0xff, sizeof(w));
	ibtrs_msg_conn_rsp_encode(&w, &m);
	REQUIRE(!ibtrs_msg_conn_rsp_decode(&w, sizeof(w), reject, cid0, &again, NULL));
	REQUIRE(!memcmp(&m, &again, sizeof(m)));
}

static void info_req(const u8 *buf, size_t len)
{
	struct ibtrs_wire_info_req w;
	const char *name = NULL, *again = NULL, *why = NULL;
	int err = ibtrs_msg_info_req_decode(buf, len, &name, &why);

	REQUIRE(!err == !why && !err == !!name);
	if (err)
		return;
	REQUIRE(name == (const char *)buf + 2);
	REQUIRE(strlen(name) >= 1 && strlen(name) <= 254 && !strpbrk(name, "/.\n\t\x7f"));
	REQUIRE(!ibtrs_msg_name_check(name, strlen(name), NULL));
	memset(&w, 0xff, sizeof(w));
	ibtrs_msg_info_req_encode(&w, name);
	REQUIRE(!ibtrs_msg_info_req_decode(&w, sizeof(w), &again, NULL) && !strcmp(name, again));
}

static void name_check(const u8 *buf, size_t len)
{
	const char *why = NULL;
	int err = ibtrs_msg_name_check((const char *)buf, len, &why);

	REQUIRE(err == 0 || err == -EINVAL);
	REQUIRE(!err == !why);
	REQUIRE(err || (len && len <= 254 && !memchr(buf, '/', len) && !memchr(buf, '.', len) &&
			!memchr(buf, 0, len)));
}

static void info_rsp(const u8 *buf, size_t len)
{
	struct ibtrs_desc d[64];
	struct ibtrs_wire_info_rsp *w;
	const char *why = NULL;
	u16 sg_cnt = 0;
	u32 life = 0;
	int err = ibtrs_msg_info_rsp_decode(buf, len, &sg_cnt, &life, &why);

	REQUIRE(err == 0 || err == -EPROTO);
	REQUIRE(!err == !why);
	if (err)
		return;
	REQUIRE(ibtrs_msg_info_rsp_size(sg_cnt) <= len);
	if (sg_cnt > ARRAY_SIZE(d))
		return;
	w = (void *)buf;
	for (u16 i = 0; i < sg_cnt; i++)
		ibtrs_msg_desc_decode(&w->desc[i], &d[i]);
	w = malloc(ibtrs_msg_info_rsp_size(sg_cnt));
	ibtrs_msg_info_rsp_encode(w, d, sg_cnt, life);
	REQUIRE(!memcmp(w, buf, 8 + sg_cnt * 16));
	free(w);
}

static void io(const u8 *buf, size_t len, u32 off, const struct ibtrs_limits *l)
{
	struct ibtrs_io_hdr h, again;
	u8 out[IBTRS_IO_HDR_MAX], *exact;
	const char *why = NULL;
	int err = ibtrs_msg_io_decode(buf, len, off, l, &h, &why);
	size_t n;

	REQUIRE(err == 0 || err == -EPROTO || err == -EINVAL);
	REQUIRE(!err == !why);
	REQUIRE(!h.need_inval || h.has_desc);
	if (err == -EPROTO)
		return;
	REQUIRE(h.usr_len >= 4 && h.usr_len <= l->max_hdr_size && h.usr_len + h.data_len == off &&
		off < l->chunk_size);
	REQUIRE(l->fence || !h.token);
	REQUIRE(h.read || !h.has_desc);
	if (err)
		return;
	REQUIRE(h.data_len <= l->max_io_size);
	REQUIRE(!h.read || h.has_desc == !!h.data_len);
	REQUIRE(!h.has_desc || h.desc.len >= h.data_len);

	n = h.read ? ibtrs_msg_read_encode(out, l->fence, h.usr_len, h.token, h.need_inval,
					   h.has_desc ? &h.desc : NULL) :
		     ibtrs_msg_write_encode(out, l->fence, h.usr_len, h.token);
	REQUIRE(n <= len && n <= l->chunk_size - off && n <= sizeof(out));
	exact = malloc(n);
	memcpy(exact, out, n);
	REQUIRE(!ibtrs_msg_io_decode(exact, n, off, l, &again, NULL));
	REQUIRE(!memcmp(&h, &again, sizeof(h)));
	free(exact);
}

static void words_hold(const char *text)
{
	size_t i;

	REQUIRE(strlen(text) < IBTRS_WORDS_LEN);
	for (i = 0; text[i]; i++)
		REQUIRE(text[i] >= 0x20 && text[i] < 0x7f);
}

static void refused(const u8 *buf, size_t len)
{
	char text[IBTRS_WORDS_LEN], again[IBTRS_WORDS_LEN];
	struct ibtrs_wire_conn_refused conn;
	struct ibtrs_wire_verdict info;
	int err, err_again;

	if (ibtrs_msg_conn_refused_words(buf, len, text)) {
		words_hold(text);
		REQUIRE(*text && strlen(text) < IBTRS_REJ_WORDS_LEN);
		REQUIRE(ibtrs_msg_conn_refused_encode(&conn, -1, IBTRS_EXT_WORDS,
						      text) == sizeof(conn));
		REQUIRE(ibtrs_msg_conn_refused_words(&conn, sizeof(conn), again) &&
			!strcmp(text, again));
	} else {
		REQUIRE(!*text);
	}
	if (!ibtrs_msg_info_refused_decode(buf, len, &err, text))
		return;
	words_hold(text);
	REQUIRE(err < 0 && err >= -IBTRS_ERRNO_MAX);
	ibtrs_msg_verdict_encode(&info, IBTRS_MSG_INFO_REFUSED, err, text);
	REQUIRE(ibtrs_msg_info_refused_decode(&info, sizeof(info), &err_again, again) &&
		err == err_again && !strcmp(text, again));
}

static void rkey(const u8 *buf, size_t len, u32 slot)
{
	struct ibtrs_wire_rkey_rsp w;
	const char *why = NULL;
	u32 key;
	int err = ibtrs_msg_rkey_decode(buf, len, slot, &key, &why);

	REQUIRE(err == 0 || err == -EPROTO);
	REQUIRE(!err == !why);
	if (err)
		return;
	ibtrs_msg_rkey_encode(&w, (u16)slot, key);
	REQUIRE(!memcmp(&w, buf, sizeof(w)));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct ibtrs_limits l = { .queue_depth = 512 };
	u32 a, b;
	u8 *buf;

	if (size < 9)
		return 0;
	memcpy(&a, data + 1, 4);
	memcpy(&b, data + 5, 4);
	buf = malloc(size - 9);
	memcpy(buf, data + 9, size - 9);
	/* small and large chunks, with sizes that a peer can have negotiated */
	l.max_hdr_size = 288 + (b & 0x1ffff);
	l.max_io_size = 4096 + (b >> 17) * 16;
	l.chunk_size = l.max_io_size + l.max_hdr_size;
	l.fence = data[0] & 0x80;
	switch (data[0] & 7) {
	case 0:
		conn_req(buf, size - 9, a % 5000);
		break;
	case 1:
		conn_rsp(buf, size - 9, a & 1, a & 2);
		break;
	case 2:
		info_req(buf, size - 9);
		break;
	case 3:
		name_check(buf, size - 9);
		break;
	case 4:
		info_rsp(buf, size - 9);
		break;
	case 5:
		io(buf, size - 9, a, &l);
		io(buf, size - 9, a % (l.chunk_size + 64), &l);
		break;
	case 6:
		rkey(buf, size - 9, a);
		break;
	case 7:
		refused(buf, size - 9);
		break;
	}
	free(buf);
	return 0;
}
