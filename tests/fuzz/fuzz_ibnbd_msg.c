// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every decoder of the block messages, server's and client's. Byte 0: bit 0 transport direction,
 * bit 1 features accepted: all but DURABILITY with bit 3, but WORDS with bit 6, but IDENTITY with
 * bit 7. Bit 2 protocol 1, bits 4..5 page size. Bytes 1..4: D. The rest is the message. Whatever is
 * accepted must keep the promises that the modules build on.
 */
#include <stdlib.h>

#include "ibnbd/proto/msg_io.h"
#include "ibnbd/logic/access.h"
#include "ibnbd/logic/limits.h"

#define MUST(x)	do { if (!(x)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const void *buf;
	size_t len;
	bool read;
	u8 version;
	u32 data_len;
	u64 features;
	u32 page_size;
};

static void server_sess_info(const struct input *in)
{
	struct ibnbd_sess_info m;
	const char *why = NULL;

	if (ibnbd_msg_sess_info_decode(in->buf, in->len, in->read, in->data_len, &m, &why)) {
		MUST(why);
		return;
	}
	MUST(m.version >= 1 && m.version <= IBNBD_PROTO_MAJOR);
	MUST(m.features == ibnbd_msg_features(m.features));
	MUST(in->read && in->data_len >= sizeof(struct ibnbd_wire_sess_info));
}

static void server_open(const struct input *in)
{
	struct ibnbd_wire_open w;
	struct ibnbd_open m, back;
	const char *why = NULL;
	int rc = ibnbd_msg_open_decode(in->buf, in->len, in->read, in->data_len,
				       in->features, &m, &why);

	if (rc) {
		MUST(rc == -EINVAL && why);
		return;
	}
	MUST(m.access <= IBNBD_ACCESS_MIGRATION);
	MUST(m.name[0] && strlen(m.name) < IBNBD_NAME_LEN);
	MUST(in->data_len >= (m.words ? 192 : m.durability ? 128 : m.identity ? 96 : 56));
	MUST((!m.words || in->features & IBNBD_FEAT_WORDS) &&
	     (!m.identity || in->features & IBNBD_FEAT_IDENTITY));
	MUST(!m.durability || (m.identity && in->features & IBNBD_FEAT_DURABILITY));
	MUST(!ibnbd_msg_open_encode(&w, &m));
	MUST(!ibnbd_msg_open_decode(&w, sizeof(w), true, in->data_len, in->features, &back, &why));
	MUST(back.access == m.access && !strcmp(back.name, m.name) && back.words == m.words);
	MUST(back.identity == m.identity && back.durability == m.durability);
}

static void server_io(const struct input *in)
{
	static const struct ibnbd_facts facts = {
		.nsectors = 1 << 20, .logical_block_size = 4096, .max_discard_sectors = 1 << 16,
		.max_write_zeroes_sectors = 1 << 16,
		.secure_erase = true,
	};
	struct ibnbd_wire_io w;
	struct ibnbd_io m, back;
	const char *why = NULL;
	u32 len;
	int rc = ibnbd_msg_io_decode(in->buf, in->len, in->read, in->data_len,
				     in->version, &m, &why);

	if (rc) {
		MUST((rc == -EINVAL || rc == -EOPNOTSUPP) && why);
		return;
	}
	MUST(m.op <= IBNBD_OP_WRITE_ZEROES && in->read == ibnbd_msg_op_reads(m.op));
	MUST(!(m.flags & ~ibnbd_msg_flags_of(m.op)));
	MUST(in->data_len == ibnbd_msg_io_data_len(m.op, m.bytes));
	MUST((m.bytes == 0) == (m.op == IBNBD_OP_FLUSH) && !(m.bytes % IBNBD_SECTOR_SIZE));
	MUST(m.prio >> 13 != 1 && m.prio >> 13 < 4);
	len = ibnbd_msg_io_encode(&w, in->version, &m);
	MUST(!ibnbd_msg_io_decode(&w, len, in->read, in->data_len, in->version, &back, &why));
	MUST(back.device_id == m.device_id && back.sector == m.sector && back.op == m.op &&
	     back.bytes == m.bytes);
	MUST((back.flags & m.flags) == m.flags && back.prio == m.prio);

	MUST(ibnbd_access_io(&facts, IBNBD_ACCESS_RO, &m, &why) == 0 ?
	     ibnbd_msg_op_reads(m.op) : true);
	if (!ibnbd_access_io(&facts, IBNBD_ACCESS_RW, &m, &why) && m.op != IBNBD_OP_FLUSH) {
		MUST(m.sector < facts.nsectors && m.sector + m.bytes / 512 <= facts.nsectors);
		MUST(!(m.sector * 512 % 4096) && !(m.bytes % 4096));
	}
}

static void client_sess_info(const struct input *in)
{
	struct ibnbd_sess_info m;
	const char *why = NULL;

	if (!ibnbd_msg_sess_info_rsp_decode(in->buf, in->len, in->features, &m, &why))
		MUST(m.version >= 1 && m.version <= 2 && !(m.features & ~in->features) &&
		     m.features == ibnbd_msg_features(m.features));
	else
		MUST(why);
}

static void client_limits(const struct input *in, const struct ibnbd_open_rsp *m)
{
	struct ibnbd_limits_in lin = {
		.max_io_bytes = in->data_len, .max_segments = 31, .features = in->features,
		.write_zeroes = in->data_len % 3, .write_cache = in->data_len / 3 % 3,
	};
	struct ibnbd_limits l;
	const char *why = NULL;
	u32 sectors = m->logical_block_size / 512;

	if (ibnbd_limits_build(m, &lin, &l, &why)) {
		MUST(why);
		return;
	}
	MUST(!l.nsectors == !m->nsectors && l.nsectors <= m->nsectors && !(l.nsectors % sectors));
	MUST(l.max_hw_sectors && !(l.max_hw_sectors % sectors) &&
	     (u64)l.max_hw_sectors * 512 <= lin.max_io_bytes);
	MUST(l.physical_block_size >= l.logical_block_size && l.io_min >= l.physical_block_size);
	MUST(!(l.max_discard_sectors % sectors) &&
	     (!l.max_discard_sectors || l.discard_alignment < l.discard_granularity));
	MUST((u64)l.max_discard_sectors * 512 <= U32_MAX &&
	     (u64)l.max_write_zeroes_sectors * 512 <= U32_MAX);
	MUST(!l.fua || l.write_cache);
}

static void client_open_refused(const struct input *in)
{
	struct ibnbd_open_refused m, back;
	struct ibnbd_wire_open_refused w;
	size_t i;

	if (!ibnbd_msg_open_refused_decode(in->buf, in->len, &m))
		return;
	MUST(m.err < 0 && m.err >= -IBNBD_ERRNO_MAX && strlen(m.text) < IBNBD_WORDS_LEN);
	for (i = 0; m.text[i]; i++)
		MUST(m.text[i] >= 0x20 && m.text[i] < 0x7f);
	ibnbd_msg_open_refused_encode(&w, m.err, m.text);
	MUST(ibnbd_msg_open_refused_decode(&w, sizeof(w), &back));
	MUST(back.err == m.err && !memcmp(back.text, m.text, sizeof(m.text)));
}

static void client_open(const struct input *in)
{
	bool identity = in->features & IBNBD_FEAT_IDENTITY;
	struct ibnbd_wire_open_rsp_dur w;
	struct ibnbd_open_rsp m, back;
	const char *why = NULL;
	int rc = ibnbd_msg_open_rsp_decode(in->buf, in->len, in->features, in->page_size, &m, &why);

	if (rc) {
		MUST(rc == -EPROTO && why);
		return;
	}
	MUST(m.logical_block_size >= 512 && m.logical_block_size <= in->page_size);
	MUST(m.physical_block_size >= m.logical_block_size);
	MUST(m.nsectors < IBNBD_MAX_SECTORS);
	MUST(m.has_identity == identity);
	MUST(m.has_durability == (identity && in->features & IBNBD_FEAT_DURABILITY));
	MUST(!(m.durability.flags & ~(u32)IBNBD_DUR_F_KNOWN));
	MUST(ibnbd_msg_open_rsp_encode(&w, &m) == ibnbd_msg_open_rsp_len(in->features));
	MUST(!ibnbd_msg_open_rsp_decode(&w, sizeof(w), in->features, in->page_size, &back, &why));
	MUST(!memcmp(&m, &back, sizeof(m)));
	MUST(ibnbd_remap_compare(&m, &back, IBNBD_ACCESS_RW, true, &why) == IBNBD_REMAP_OK);
	client_limits(in, &m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { 0 };
	const char *why = NULL;
	void *copy;
	bool nowait;
	u32 id;
	int type;

	if (size < 5)
		return 0;
	in.read = data[0] & 1;
	in.features = data[0] & 2 ? IBNBD_FEAT_KNOWN : 0;
	in.features &= ~(u64)((data[0] & 8 ? IBNBD_FEAT_DURABILITY : 0) |
			      (data[0] & 0x40 ? IBNBD_FEAT_WORDS : 0) |
			      (data[0] & 0x80 ? IBNBD_FEAT_IDENTITY : 0));
	in.version = data[0] & 4 ? 1 : 2;
	in.page_size = 4096u << (data[0] >> 4 & 3) * 2;
	memcpy(&in.data_len, data + 1, 4);
	in.len = size - 5;
	copy = malloc(in.len ? in.len : 1);	/* aligned, and ends where the message ends */
	MUST(copy);
	memcpy(copy, data + 5, in.len);
	in.buf = copy;

	type = ibnbd_msg_type(in.buf, in.len, &why);
	MUST(type >= 0 || why);
	switch (type) {
	case IBNBD_MSG_SESS_INFO:
		server_sess_info(&in);
		break;
	case IBNBD_MSG_OPEN:
		server_open(&in);
		break;
	case IBNBD_MSG_IO:
		server_io(&in);
		break;
	case IBNBD_MSG_CLOSE:
		ibnbd_msg_close_decode(in.buf, in.len, IBNBD_FEAT_KNOWN, &id, &nowait, &why);
		break;
	default:
		client_sess_info(&in);
		client_open_refused(&in);
		client_open(&in);
		break;
	}
	free(copy);
	return 0;
}
