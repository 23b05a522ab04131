/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Codec of the transport messages: bytes <-> host structs, with every check of protocol 11 that
 * needs nothing but the bytes and the negotiated numbers. Decoders take (buf, len, ...), never read
 * past len, and on refusal return a negative errno and a reason. Encoders zero every reserved byte.
 */
#ifndef IBTRS_PROTO_MSG_H
#define IBTRS_PROTO_MSG_H

#include "ibtrs/proto/wire.h"

struct ibtrs_conn_req {
	u16 cid;
	u16 cid_num;
	u16 recon_cnt;
	bool first_conn;
	u8 ext;				/* IBTRS_EXT_*, known bits only; 0 = none offered */
	u8 path_uuid[IBTRS_UUID_LEN];
	u8 session_uuid[IBTRS_UUID_LEN];
};

/*
 * Negotiated numbers of a path, from the CONN_RSP of cid 0; everything below is checked against
 * them.
 */
struct ibtrs_limits {
	u32 queue_depth;
	u32 max_io_size;
	u32 max_hdr_size;
	u32 chunk_size;			/* max_io_size + max_hdr_size */
	bool fence;			/* headers carry tokens */
	bool new_rkey;			/* answers to requests may carry new keys of chunks */
};

struct ibtrs_conn_rsp {
	int err;			/* 0 or negative errno; the rest counts only when 0 */
	u32 ext;			/* accepted, known bits only */
	struct ibtrs_limits limits;	/* fence is the caller's: it depends on what was offered */
};

struct ibtrs_desc {
	u64 addr;
	u32 rkey;
	u32 len;
};

/* The server's view of a request header, copied out of the chunk. */
struct ibtrs_io_hdr {
	bool read;			/* READ or READ_FENCED */
	bool need_inval;
	bool has_desc;
	u16 usr_len;
	u32 data_len;			/* D = off - usr_len */
	u64 token;			/* 0 without FENCE */
	struct ibtrs_desc desc;
};

/* The longest transport header this code ever sends or reads: READ_FENCED with one descriptor. */
#define IBTRS_IO_HDR_MAX	\
	(sizeof(struct ibtrs_wire_read_fenced) + sizeof(struct ibtrs_wire_desc))

void ibtrs_msg_conn_req_encode(struct ibtrs_wire_conn_req *w, const struct ibtrs_conn_req *m);
int ibtrs_msg_conn_req_decode(const void *buf, size_t len, u32 max_cons, struct ibtrs_conn_req *m,
			      const char **why);

/* Is this the CONN_REQ of a later life of its path than @before was of? recon_cnt wraps around. */
static inline bool ibtrs_msg_conn_req_newer(const struct ibtrs_conn_req *m, u16 before)
{
	return (s16)(m->recon_cnt - before) > 0;
}

void ibtrs_msg_conn_rsp_encode(struct ibtrs_wire_conn_rsp *w, const struct ibtrs_conn_rsp *m);
int ibtrs_msg_conn_rsp_decode(const void *buf, size_t len, bool reject, bool cid0,
			      struct ibtrs_conn_rsp *m, const char **why);

size_t ibtrs_msg_conn_refused_encode(struct ibtrs_wire_conn_refused *w, int err, u8 ext,
				     const char *text);
bool ibtrs_msg_conn_refused_words(const void *buf, size_t len, char *text);
void ibtrs_msg_verdict_encode(struct ibtrs_wire_verdict *w, enum ibtrs_msg_type type, int err,
			      const char *text);
bool ibtrs_msg_info_refused_decode(const void *buf, size_t len, int *err, char *text);

void ibtrs_msg_info_req_encode(struct ibtrs_wire_info_req *w, const char *name);
int ibtrs_msg_info_req_decode(const void *buf, size_t len, const char **name, const char **why);
int ibtrs_msg_name_check(const char *name, size_t len, const char **why);

static inline size_t ibtrs_msg_info_rsp_size(u32 sg_cnt)
{
	return sizeof(struct ibtrs_wire_info_rsp) + (size_t)sg_cnt * sizeof(struct ibtrs_wire_desc);
}
void ibtrs_msg_info_rsp_encode(struct ibtrs_wire_info_rsp *w, const struct ibtrs_desc *desc,
			       u16 sg_cnt, u32 life);
int ibtrs_msg_info_rsp_decode(const void *buf, size_t len, u16 *sg_cnt, u32 *life,
			      const char **why);
void ibtrs_msg_desc_encode(struct ibtrs_wire_desc *w, const struct ibtrs_desc *d);
void ibtrs_msg_desc_decode(const struct ibtrs_wire_desc *w, struct ibtrs_desc *d);

size_t ibtrs_msg_write_encode(void *buf, bool fence, u16 usr_len, u64 token);
size_t ibtrs_msg_read_encode(void *buf, bool fence, u16 usr_len, u64 token, bool need_inval,
			     const struct ibtrs_desc *desc);

int ibtrs_msg_io_decode(const void *buf, size_t len, u32 off, const struct ibtrs_limits *l,
			struct ibtrs_io_hdr *h, const char **why);

void ibtrs_msg_rkey_encode(struct ibtrs_wire_rkey_rsp *w, u16 slot, u32 rkey);
int ibtrs_msg_rkey_decode(const void *buf, size_t len, u32 slot, u32 *rkey, const char **why);

void ibtrs_trial_encode(struct ibtrs_wire_trial *w, const struct ibtrs_desc *desc);
int ibtrs_trial_decode(const struct ibtrs_wire_trial *w, u32 off, const struct ibtrs_limits *l,
		       struct ibtrs_desc *desc, const char **why);

#endif
