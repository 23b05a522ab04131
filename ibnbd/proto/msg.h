/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Codec of the block messages: bytes <-> host structs. It does every check of protocol 11 that
 * needs only the bytes, the transport direction and the size of the data area. Both modules, the
 * tests and the tools use it; it is header-only, so that none of them links the other's code.
 *
 * Server side decoders take the user header in private, 8-byte aligned memory (@usr, @len), the
 * transport direction (@read) and D (@data_len). They refuse with -EINVAL or -EOPNOTSUPP and a
 * reason; the caller replies with that error. Client side decoders take the reply and its length
 * and refuse with -EPROTO. Decoders never read beyond the length; bad bytes from a peer cause an
 * error code and nothing else. Encoders write every byte of the message: bytes that belong to no
 * field are zero (E-47).
 */
#ifndef IBNBD_PROTO_MSG_H
#define IBNBD_PROTO_MSG_H

#include <ibtrs/words.h>
#include "ibnbd/proto/wire.h"

#define IBNBD_ERRNO_MAX		511	/* the largest that a transport immediate carries */

/* SESS_INFO and its reply. */
struct ibnbd_sess_info {
	u8 version;			/* major; decoded: min(ours, peer's), at least 1 */
	/*
	 * IBNBD_FEAT_*; decoded: known bits only, without those whose base is missing; 0 without
	 * ext_magic
	 */
	u64 features;
};

struct ibnbd_open {
	enum ibnbd_access access;
	const char *name;		/* NUL-terminated; decoded: points into the message */
	/* decoded: the answer has 96 bytes: IDENTITY was accepted and D has room */
	bool identity;
	/* decoded: the answer has 128 bytes: DURABILITY was accepted, too, and D has room */
	bool durability;
	/* decoded: a refusal may carry words: WORDS was accepted and D has room */
	bool words;
};

struct ibnbd_open_refused {
	int err;			/* negative errno */
	char text[IBNBD_WORDS_LEN];	/* may be empty */
};

struct ibnbd_identity {
	u8 id[IBNBD_ID_LEN];
	u8 kind;			/* enum ibnbd_id_kind */
	u8 flags;			/* IBNBD_ID_F_* */
	u32 io_min;
	u32 io_opt;
	u64 writer_gen;
};

struct ibnbd_durability {
	/*
	 * A random number. When it has changed, acknowledged writes that no flush has covered may
	 * be lost.
	 */
	u64 cache_epoch;
	u32 flags;			/* IBNBD_DUR_F_* */
};

struct ibnbd_open_rsp {
	u32 device_id;
	u64 nsectors;
	u32 max_hw_sectors;
	u32 max_write_zeroes_sectors;
	u32 max_discard_sectors;
	u32 discard_granularity;
	u32 discard_alignment;
	u32 physical_block_size;	/* encoded: clamped to 32768 (protocol 10.1) */
	u32 logical_block_size;
	u16 max_segments;
	u16 secure_discard;
	bool fua;
	bool writeback;
	bool has_identity;		/* encoded: the 96-byte form */
	struct ibnbd_identity identity;	/* zero without */
	bool has_durability;		/* with has_identity only; encoded: the 128-byte form */
	struct ibnbd_durability durability;	/* zero without */
};

static inline u64 ibnbd_msg_get64(const __le32 w[2])
{
	return (u64)le32_to_cpu(w[1]) << 32 | le32_to_cpu(w[0]);
}

static inline void ibnbd_msg_put64(__le32 w[2], u64 v)
{
	w[0] = cpu_to_le32((u32)v);
	w[1] = cpu_to_le32((u32)(v >> 32));
}

/**
 * ibnbd_msg_type() - which message is this user header?
 *
 * Return: enum ibnbd_msg_type of a request, or -EINVAL (too short, a reply type, unknown).
 */
static inline int ibnbd_msg_type(const void *usr, size_t len, const char **why)
{
	const struct ibnbd_wire_hdr *w = usr;
	u16 type;

	if (len < sizeof(*w))
		return ibnbd_refuse(-EINVAL, why, "message shorter than its header");
	type = le16_to_cpu(w->type);
	switch (type) {
	case IBNBD_MSG_SESS_INFO:
	case IBNBD_MSG_OPEN:
	case IBNBD_MSG_IO:
	case IBNBD_MSG_CLOSE:
		return type;
	default:
		return ibnbd_refuse(-EINVAL, why, "unknown message type");
	}
}

/* Drops unknown features, and DURABILITY without IDENTITY, on which it is built. */
static inline u64 ibnbd_msg_features(u64 features)
{
	features &= IBNBD_FEAT_KNOWN;
	return features & IBNBD_FEAT_IDENTITY ? features :
						features & ~(u64)IBNBD_FEAT_DURABILITY;
}

/* ---- SESS_INFO: the same 36 bytes both ways ---- */

/*
 * @type: SESS_INFO or SESS_INFO_RSP. ext_magic is sent only together with features: when we offer
 * none, we look like a peer without the extension.
 */
static inline void ibnbd_msg_sess_info_encode(struct ibnbd_wire_sess_info *w,
					      enum ibnbd_msg_type type,
					      const struct ibnbd_sess_info *m)
{
	u64 features = ibnbd_msg_features(m->features);

	memset(w, 0, sizeof(*w));
	w->hdr.type = cpu_to_le16((u16)type);
	w->version = m->version;
	if (features) {
		memcpy(w->ext_magic, "IBNX", sizeof(w->ext_magic));
		ibnbd_msg_put64(w->features, features);
	}
}

static inline void ibnbd_msg_sess_info_fields(const void *buf, size_t len,
					      struct ibnbd_sess_info *m)
{
	const struct ibnbd_wire_sess_info *w = buf;

	m->version = w->version < IBNBD_PROTO_MAJOR ? w->version : IBNBD_PROTO_MAJOR;
	m->features = 0;
	if (len >= sizeof(*w) && !memcmp(w->ext_magic, "IBNX", sizeof(w->ext_magic)))
		m->features = ibnbd_msg_features(ibnbd_msg_get64(w->features));
}

/*
 * Server: E-20 (5 bytes are enough for a version), E-21, version >= 1. Features are read only from
 * the full 36 bytes. ibnbd_msg_type() has checked the type.
 */
static inline int ibnbd_msg_sess_info_decode(const void *usr, size_t len, bool read, u32 data_len,
					     struct ibnbd_sess_info *m, const char **why)
{
	if (len < offsetof(struct ibnbd_wire_sess_info, reserved0))
		return ibnbd_refuse(-EINVAL, why, "SESS_INFO too short");
	if (!read || data_len < sizeof(struct ibnbd_wire_sess_info))
		return ibnbd_refuse(-EINVAL, why, "SESS_INFO leaves no room for the reply");
	ibnbd_msg_sess_info_fields(usr, len, m);
	if (!m->version)
		return ibnbd_refuse(-EINVAL, why, "SESS_INFO of protocol version 0");
	return 0;
}

/* Client, E-43. @offered: features that SESS_INFO carried; the server can accept no others. */
static inline int ibnbd_msg_sess_info_rsp_decode(const void *buf, size_t len, u64 offered,
						 struct ibnbd_sess_info *m, const char **why)
{
	const struct ibnbd_wire_sess_info *w = buf;

	if (len < sizeof(*w))
		return ibnbd_refuse(-EPROTO, why, "SESS_INFO reply too short");
	if (le16_to_cpu(w->hdr.type) != IBNBD_MSG_SESS_INFO_RSP)
		return ibnbd_refuse(-EPROTO, why, "reply to SESS_INFO has another type");
	ibnbd_msg_sess_info_fields(buf, len, m);
	m->features = ibnbd_msg_features(m->features & offered);
	if (!m->version)
		return ibnbd_refuse(-EPROTO, why, "server speaks protocol version 0");
	return 0;
}

/* ---- OPEN ---- */

/* The caller has checked the name's length; a longer name is an error and is never cut. */
static inline int ibnbd_msg_open_encode(struct ibnbd_wire_open *w, const struct ibnbd_open *m)
{
	size_t n = strlen(m->name);

	memset(w, 0, sizeof(*w));
	if (!n || n >= sizeof(w->name))
		return -ENAMETOOLONG;
	w->hdr.type = cpu_to_le16(IBNBD_MSG_OPEN);
	w->access_mode = (u8)m->access;
	w->io_mode = 1;
	memcpy(w->name, m->name, n);
	return 0;
}

/* Length of OPEN_RSP, by the features the server accepted. */
static inline u32 ibnbd_msg_open_rsp_len(u64 features)
{
	if (!(features & IBNBD_FEAT_IDENTITY))
		return sizeof(struct ibnbd_wire_open_rsp);
	return features & IBNBD_FEAT_DURABILITY ? sizeof(struct ibnbd_wire_open_rsp_dur) :
						  sizeof(struct ibnbd_wire_open_rsp_id);
}

/* D that the client must reserve, so that every answer to OPEN fits. */
static inline u32 ibnbd_msg_open_room(u64 features)
{
	static_assert(sizeof(struct ibnbd_wire_open_refused) >=
		      sizeof(struct ibnbd_wire_open_rsp_dur), "room");
	return features & IBNBD_FEAT_WORDS ? sizeof(struct ibnbd_wire_open_refused) :
					     ibnbd_msg_open_rsp_len(features);
}

/*
 * Server: E-20, E-21, the range check of E-30, the string checks of E-29 (terminated, not empty, no
 * control characters). After a refusal @m->words is valid, too, and @m->name is a text for the log.
 */
static inline int ibnbd_msg_open_decode(const void *usr, size_t len, bool read, u32 data_len,
					u64 features, struct ibnbd_open *m, const char **why)
{
	const struct ibnbd_wire_open *w = usr;
	size_t i;

	m->name = "OPEN";
	m->words = read && features & IBNBD_FEAT_WORDS &&
		   data_len >= sizeof(struct ibnbd_wire_open_refused);
	if (len < offsetof(struct ibnbd_wire_open, reserved))
		return ibnbd_refuse(-EINVAL, why, "OPEN too short");
	if (!read || data_len < sizeof(struct ibnbd_wire_open_rsp))
		return ibnbd_refuse(-EINVAL, why, "OPEN leaves no room for the reply");
	if (w->access_mode > IBNBD_ACCESS_MIGRATION)
		return ibnbd_refuse(-EINVAL, why, "OPEN with an unknown access mode");
	for (i = 0; i < sizeof(w->name) && w->name[i]; i++)
		if (w->name[i] < 0x20 || w->name[i] == 0x7f)
			return ibnbd_refuse(-EINVAL, why, "control character in the device name");
	if (i == sizeof(w->name))
		return ibnbd_refuse(-EINVAL, why, "device name is not terminated");
	if (!i)
		return ibnbd_refuse(-EINVAL, why, "device name is empty");
	m->access = (enum ibnbd_access)w->access_mode;
	m->name = (const char *)w->name;
	m->identity = features & IBNBD_FEAT_IDENTITY &&
		      data_len >= sizeof(struct ibnbd_wire_open_rsp_id);
	m->durability = m->identity && features & IBNBD_FEAT_DURABILITY &&
			data_len >= sizeof(struct ibnbd_wire_open_rsp_dur);
	return 0;
}

/* ---- OPEN_REFUSED ---- */

/*
 * @err: a negative errno. @text: the words; a byte that is not printable ASCII becomes '?', text
 * that does not fit is cut.
 */
static inline void ibnbd_msg_open_refused_encode(struct ibnbd_wire_open_refused *w, int err,
						 const char *text)
{
	memset(w, 0, sizeof(*w));
	w->hdr.type = cpu_to_le16(IBNBD_MSG_OPEN_REFUSED);
	w->err = cpu_to_le32((u32)-err);
	ibtrs_words_copy((char *)w->text, sizeof(w->text), text, strlen(text));
}

/**
 * ibnbd_msg_open_refused_decode() - client: is the answer to OPEN a refusal with words? (E-51)
 * @buf: answer
 * @len: its length
 * @m: result: the errno is always in the valid range, the text printable and terminated
 *
 * Called only when WORDS was negotiated.
 *
 * Return: true: it is such a refusal, and @m is filled. False: call ibnbd_msg_open_rsp_decode().
 */
static inline bool ibnbd_msg_open_refused_decode(const void *buf, size_t len,
						 struct ibnbd_open_refused *m)
{
	const struct ibnbd_wire_open_refused *w = buf;
	u32 err;

	if (len < sizeof(*w) || le16_to_cpu(w->hdr.type) != IBNBD_MSG_OPEN_REFUSED)
		return false;
	err = le32_to_cpu(w->err);
	m->err = err && err <= IBNBD_ERRNO_MAX ? -(int)err : -EPROTO;
	ibtrs_words_copy(m->text, sizeof(m->text), w->text, sizeof(w->text));
	return true;
}

static inline void ibnbd_msg_identity_encode(struct ibnbd_wire_identity *w,
					     const struct ibnbd_identity *m)
{
	memcpy(w->id, m->id, sizeof(w->id));
	w->kind = m->kind;
	w->flags = m->flags & IBNBD_ID_F_KNOWN;
	w->io_min = cpu_to_le32(m->io_min);
	w->io_opt = cpu_to_le32(m->io_opt);
	ibnbd_msg_put64(w->writer_gen, m->writer_gen);
}

static inline void ibnbd_msg_identity_decode(const struct ibnbd_wire_identity *w,
					     struct ibnbd_identity *m)
{
	memcpy(m->id, w->id, sizeof(m->id));
	m->kind = w->kind;
	m->flags = w->flags & IBNBD_ID_F_KNOWN;
	m->io_min = le32_to_cpu(w->io_min);
	m->io_opt = le32_to_cpu(w->io_opt);
	m->writer_gen = ibnbd_msg_get64(w->writer_gen);
}

/*
 * @room is the buffer for the longest form. The message takes 56 bytes of it, 96 with
 * @m->has_identity, and 128 with @m->has_durability, too. Return the length.
 */
static inline u32 ibnbd_msg_open_rsp_encode(struct ibnbd_wire_open_rsp_dur *room,
					    const struct ibnbd_open_rsp *m)
{
	struct ibnbd_wire_open_rsp_id *w = &room->base;
	u32 physical = m->physical_block_size < 32768 ? m->physical_block_size : 32768;

	memset(room, 0, sizeof(*room));
	w->rsp.hdr.type = cpu_to_le16(IBNBD_MSG_OPEN_RSP);
	w->rsp.device_id = cpu_to_le32(m->device_id);
	w->rsp.nsectors = cpu_to_le64(m->nsectors);
	w->rsp.max_hw_sectors = cpu_to_le32(m->max_hw_sectors);
	w->rsp.max_write_zeroes_sectors = cpu_to_le32(m->max_write_zeroes_sectors);
	w->rsp.max_discard_sectors = cpu_to_le32(m->max_discard_sectors);
	w->rsp.discard_granularity = cpu_to_le32(m->discard_granularity);
	w->rsp.discard_alignment = cpu_to_le32(m->discard_alignment);
	w->rsp.physical_block_size = cpu_to_le16((u16)physical);
	w->rsp.logical_block_size = cpu_to_le16((u16)m->logical_block_size);
	w->rsp.max_segments = cpu_to_le16(m->max_segments);
	w->rsp.secure_discard = cpu_to_le16(m->secure_discard);
	w->rsp.cache_policy = (m->fua ? IBNBD_CACHE_FUA : 0) |
			      (m->writeback ? IBNBD_CACHE_WRITEBACK : 0);
	if (!m->has_identity)
		return sizeof(w->rsp);
	ibnbd_msg_identity_encode(&w->id, &m->identity);
	if (!m->has_durability)
		return sizeof(*w);
	room->dur.cache_epoch = cpu_to_le64(m->durability.cache_epoch);
	room->dur.flags = cpu_to_le32(m->durability.flags & IBNBD_DUR_F_KNOWN);
	return sizeof(*room);
}

/*
 * May a server export a device with this logical block size? The size is sent in 16 bits (protocol
 * 10.1).
 */
static inline bool ibnbd_msg_block_size_ok(u32 logical, u32 max)
{
	return logical >= IBNBD_SECTOR_SIZE && logical <= max && !(logical & (logical - 1));
}

static inline int ibnbd_msg_open_rsp_check(const struct ibnbd_open_rsp *m, u32 page_size,
					   const char **why)
{
	if (!ibnbd_msg_block_size_ok(m->logical_block_size, page_size))
		return ibnbd_refuse(
			-EPROTO, why,
			"logical block size is not a power of two from 512 to the page size");
	if (m->physical_block_size < m->logical_block_size ||
	    m->physical_block_size & (m->physical_block_size - 1))
		return ibnbd_refuse(
			-EPROTO, why,
			"physical block size is below the logical one or no power of two");
	if (m->nsectors >= IBNBD_MAX_SECTORS)
		return ibnbd_refuse(-EPROTO, why, "capacity is beyond 2^63 bytes");
	if (m->max_discard_sectors && m->discard_granularity % m->logical_block_size)
		return ibnbd_refuse(
			-EPROTO, why,
			"discard granularity is not a multiple of the logical block size");
	return 0;
}

/**
 * ibnbd_msg_open_rsp_decode() - client, E-43
 * @features: negotiated; the reply has as many bytes as ibnbd_msg_open_rsp_len() says
 * @page_size: the largest logical block this host can work with
 *
 * A physical block size of 0 is 65536 cut to 16 bits (protocol 10.1); it is replaced by the logical
 * block size. Fields that are only informative, or that the features make meaningless, are not
 * checked here: logic/limits does it.
 */
static inline int ibnbd_msg_open_rsp_decode(const void *buf, size_t len, u64 features,
					    u32 page_size, struct ibnbd_open_rsp *m,
					    const char **why)
{
	const struct ibnbd_wire_open_rsp_dur *all = buf;
	const struct ibnbd_wire_open_rsp_id *w = buf;

	memset(m, 0, sizeof(*m));
	features = ibnbd_msg_features(features);
	if (len < ibnbd_msg_open_rsp_len(features))
		return ibnbd_refuse(-EPROTO, why, "OPEN reply too short");
	if (le16_to_cpu(w->rsp.hdr.type) != IBNBD_MSG_OPEN_RSP)
		return ibnbd_refuse(-EPROTO, why, "reply to OPEN has another type");
	m->device_id = le32_to_cpu(w->rsp.device_id);
	m->nsectors = le64_to_cpu(w->rsp.nsectors);
	m->max_hw_sectors = le32_to_cpu(w->rsp.max_hw_sectors);
	m->max_write_zeroes_sectors = le32_to_cpu(w->rsp.max_write_zeroes_sectors);
	m->max_discard_sectors = le32_to_cpu(w->rsp.max_discard_sectors);
	m->discard_granularity = le32_to_cpu(w->rsp.discard_granularity);
	m->discard_alignment = le32_to_cpu(w->rsp.discard_alignment);
	m->logical_block_size = le16_to_cpu(w->rsp.logical_block_size);
	m->physical_block_size = le16_to_cpu(w->rsp.physical_block_size);
	if (!m->physical_block_size)
		m->physical_block_size = m->logical_block_size;
	m->max_segments = le16_to_cpu(w->rsp.max_segments);
	m->secure_discard = le16_to_cpu(w->rsp.secure_discard);
	m->fua = w->rsp.cache_policy & IBNBD_CACHE_FUA;
	m->writeback = w->rsp.cache_policy & IBNBD_CACHE_WRITEBACK;
	m->has_identity = features & IBNBD_FEAT_IDENTITY;
	if (m->has_identity)
		ibnbd_msg_identity_decode(&w->id, &m->identity);
	m->has_durability = features & IBNBD_FEAT_DURABILITY;
	if (m->has_durability) {
		m->durability.cache_epoch = le64_to_cpu(all->dur.cache_epoch);
		m->durability.flags = le32_to_cpu(all->dur.flags) & IBNBD_DUR_F_KNOWN;
	}
	return ibnbd_msg_open_rsp_check(m, page_size, why);
}

/* ---- CLOSE ---- */

static inline void ibnbd_msg_close_encode(struct ibnbd_wire_close *w, u32 device_id, bool nowait)
{
	memset(w, 0, sizeof(*w));
	w->hdr.type = cpu_to_le16(IBNBD_MSG_CLOSE);
	if (nowait)
		w->hdr.pad = cpu_to_le16(IBNBD_CLOSE_F_NOWAIT);
	w->device_id = cpu_to_le32(device_id);
}

/*
 * Server, E-20. Direction and D are not checked: the answer has no data. The flags are ignored
 * without IDENTITY, because other clients may leave any value there.
 */
static inline int ibnbd_msg_close_decode(const void *usr, size_t len, u64 features, u32 *device_id,
					 bool *nowait, const char **why)
{
	const struct ibnbd_wire_close *w = usr;

	if (len < sizeof(*w))
		return ibnbd_refuse(-EINVAL, why, "CLOSE too short");
	*device_id = le32_to_cpu(w->device_id);
	*nowait = features & IBNBD_FEAT_IDENTITY && le16_to_cpu(w->hdr.pad) & IBNBD_CLOSE_F_NOWAIT;
	return 0;
}

#endif
