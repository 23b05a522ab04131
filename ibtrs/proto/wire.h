/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The bytes of IBTRS on the wire: RTRS 2.0 (protocol 2-5) and our extensions (protocol 8).
 * Everything is little endian except the immediate, which imm.h owns.
 * Sizes and offsets are asserted here and nowhere else.
 */
#ifndef IBTRS_PROTO_WIRE_H
#define IBTRS_PROTO_WIRE_H

#include <ibtrs/pure.h>

#define IBTRS_MAGIC		0x1bbd
#define IBTRS_PROTO_VER		0x0200
#define IBTRS_PROTO_MAJOR	2
#define IBTRS_SERVICE_QD	512	/* cid 0 is sized for this many requests */
#define IBTRS_MIN_CHUNK		8192
/* our own bound on the max_hdr_size that a peer may announce (E-34) */
#define IBTRS_MAX_HDR		(1u << 20)
#define IBTRS_MAX_QD		65535
#define IBTRS_MAX_CONS		4096
/* max_hdr_size our server announces, whatever its page size (protocol 2.3) */
#define IBTRS_HDR_SIZE		4096
#define IBTRS_NAME_LEN		255	/* session name with NUL */
#define IBTRS_UUID_LEN		16
#define IBTRS_REJ_REASON	28	/* CM: consumer defined */

enum ibtrs_msg_type {
	IBTRS_MSG_INFO_REQ	= 0,
	IBTRS_MSG_INFO_RSP	= 1,
	IBTRS_MSG_WRITE		= 2,
	IBTRS_MSG_READ		= 3,
	IBTRS_MSG_RKEY_RSP	= 4,
	IBTRS_MSG_WRITE_FENCED	= 5,
	IBTRS_MSG_READ_FENCED	= 6,
	IBTRS_MSG_TRIAL		= 7,
	IBTRS_MSG_INFO_REFUSED	= 8,	/* answers INFO_REQ when WORDS was accepted */
	/* on a connection of authentication, and on no other (protocol.md 8.6) */
	IBTRS_MSG_AUTH_HELLO	= 20,
	IBTRS_MSG_AUTH_CHALLENGE = 21,
	IBTRS_MSG_AUTH_PROOF	= 22,
	IBTRS_MSG_AUTH_VERDICT	= 23,
};

enum {
	IBTRS_RSP_F_NEW_RKEY	= 0x2,	/* CONN_RSP.flags: always-invalidate */
	IBTRS_READ_F_NEED_INVAL	= 0x1,	/* READ.flags */
	IBTRS_REQ_F_FIRST_CONN	= 0x1,	/* CONN_REQ.first_conn */
};

enum {	/* CONN_REQ.ext_features, CONN_RSP.ext_features (protocol 8.1) */
	IBTRS_EXT_FENCE		= 0x1,
	IBTRS_EXT_EVENTS	= 0x2,
	IBTRS_EXT_AUTH		= 0x4,	/* only with a proof, so it is not in EXT_OFFERED */
	IBTRS_EXT_TRIAL		= 0x8,
	IBTRS_EXT_WORDS		= 0x10,
	IBTRS_EXT_OFFERED	= IBTRS_EXT_FENCE | IBTRS_EXT_EVENTS | IBTRS_EXT_TRIAL |
				  IBTRS_EXT_WORDS,
	IBTRS_EXT_KNOWN		= IBTRS_EXT_OFFERED | IBTRS_EXT_AUTH,
};

#define IBTRS_REQ_MAC_LEN	8
#define IBTRS_RSP_MAC_LEN	16

struct ibtrs_wire_conn_req {		/* protocol 2.2 + 8.1 */
	u8	cma_version;		/* 0, rdma_cm overwrites it for AF_IB */
	u8	ip_version;		/* 0, ditto */
	__le16	magic;
	__le16	version;
	__le16	cid;
	__le16	cid_num;
	__le16	recon_cnt;
	u8	path_uuid[IBTRS_UUID_LEN];
	u8	session_uuid[IBTRS_UUID_LEN];
	u8	first_conn;		/* bit 0 */
	u8	ext_features;
	u8	ext_magic[2];		/* "IX" */
	u8	mac[IBTRS_REQ_MAC_LEN];	/* 0 without AUTH */
};

struct ibtrs_wire_conn_rsp {		/* protocol 2.3 + 8.1 */
	__le16	magic;
	__le16	version;
	__le16	err;			/* 0, or a negative errno as 16-bit two's complement */
	__le16	queue_depth;
	__le32	max_io_size;
	__le32	max_hdr_size;
	__le32	flags;
	u8	ext_magic[4];		/* "IBTX" */
	__le32	ext_features;
	u8	mac[IBTRS_RSP_MAC_LEN];	/* 0 without AUTH */
	u8	reserved[12];
};

/*
 * The largest errno that is said to a peer, or taken from one. Those from 512 on are the kernel's
 * own (ERESTARTSYS, EIOCBQUEUED): a system call that returned one would be restarted, or be a BUG.
 */
#define IBTRS_ERRNO_MAX		511

/* An error as a peer hears it, or is heard: ECONNRESET if it is none, or the kernel's own. */
static inline int ibtrs_errno_said(int err)
{
	return err < 0 && err >= -IBTRS_ERRNO_MAX ? err : -ECONNRESET;
}

#define IBTRS_REJ_WORDS_LEN	92	/* with NUL: what a CM REJ has room for */
#define IBTRS_WORDS_LEN		184	/* with NUL */

/* a CONN_RSP with err, towards a client that offered WORDS */
struct ibtrs_wire_conn_refused {
	struct ibtrs_wire_conn_rsp rsp;	/* ext_magic, and ext_features WORDS */
	u8	text[IBTRS_REJ_WORDS_LEN];
};

/* INFO_REFUSED, in place of INFO_RSP when WORDS was accepted, and AUTH_VERDICT: server to client */
struct ibtrs_wire_verdict {
	__le16	type;
	__le16	err;			/* a positive errno; 0 in a verdict: let in */
	__le32	reserved;
	u8	text[IBTRS_WORDS_LEN];
};

struct ibtrs_wire_info_req {		/* protocol 2.4 */
	__le16	type;
	u8	name[IBTRS_NAME_LEN];
	u8	reserved[15];
};

struct ibtrs_wire_desc {
	__le64	addr;
	__le32	rkey;
	__le32	len;
};

struct ibtrs_wire_info_rsp {		/* protocol 2.4, followed by sg_cnt descriptors */
	__le16	type;
	__le16	sg_cnt;
	__le32	life;			/* protocol 8.2; else 0 */
	struct ibtrs_wire_desc desc[];
};

#define IBTRS_AUTH_MAGIC	0x1bba
#define IBTRS_AUTH_VER		0x0100
#define IBTRS_AUTH_MAJOR	1
#define IBTRS_NONCE_LEN		32
#define IBTRS_MAC_LEN		32

/*
 * Private data of the CM REQ of a connection that brings a proof. It cannot be mistaken for a
 * CONN_REQ: both have their magic number at the same offset, and the numbers differ.
 */
struct ibtrs_wire_auth_req {		/* protocol.md 8.6 */
	u8	cma_version;		/* as in CONN_REQ: never looked at */
	u8	ip_version;
	__le16	magic;
	__le16	version;
	__le16	reserved0;
	__le16	reserved1;
	__le16	recon_cnt;
	u8	path_uuid[IBTRS_UUID_LEN];
	u8	session_uuid[IBTRS_UUID_LEN];
	u8	reserved2;
	u8	ext_features;		/* WORDS */
	u8	ext_magic[2];
	u8	reserved3[8];
};

struct ibtrs_wire_auth_rsp {		/* in the CM REP; a REJ is as for a CONN_REQ */
	__le16	magic;
	__le16	version;
	u8	reserved[52];
};

struct ibtrs_wire_auth_hello {		/* client to server */
	__le16	type;
	u8	reserved[6];
	u8	name[64];		/* of the key; zeros follow it */
	u8	nonce[IBTRS_NONCE_LEN];
};

struct ibtrs_wire_auth_challenge {	/* server to client */
	__le16	type;
	u8	reserved[6];
	u8	nonce[IBTRS_NONCE_LEN];
	u8	mac[2][IBTRS_MAC_LEN];	/* with the present key, with the next */
};

struct ibtrs_wire_auth_proof {		/* client to server */
	__le16	type;
	__le16	which;			/* which of the two MACs fits the client's key */
	__le32	reserved;
	u8	mac[IBTRS_MAC_LEN];
};

struct ibtrs_wire_write {		/* protocol 4.1 */
	__le16	type;
	__le16	usr_len;
};

struct ibtrs_wire_read {		/* protocol 4.2, followed by sg_cnt descriptors */
	__le16	type;
	__le16	usr_len;
	__le16	flags;
	__le16	sg_cnt;
	struct ibtrs_wire_desc desc[];
};

struct ibtrs_wire_write_fenced {	/* protocol 8.2 */
	__le16	type;
	__le16	usr_len;
	__le32	reserved;
	__le64	token;
};

struct ibtrs_wire_read_fenced {		/* protocol 8.2 */
	__le16	type;
	__le16	usr_len;
	__le16	flags;
	__le16	sg_cnt;
	__le64	token;
	struct ibtrs_wire_desc desc[];
};

struct ibtrs_wire_trial {		/* protocol.md 8.4 */
	__le16	type;
	u8	reserved[6];
	struct ibtrs_wire_desc desc;
};

struct ibtrs_wire_rkey_rsp {		/* protocol 5 */
	__le16	type;
	__le16	buf_id;
	__le32	rkey;
};

#define IBTRS_ASSERT_OFF(s, f, off) static_assert(offsetof(struct s, f) == (off), #s "." #f)

static_assert(sizeof(struct ibtrs_wire_conn_req) == 56, "CONN_REQ");
IBTRS_ASSERT_OFF(ibtrs_wire_conn_req, magic, 2);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_req, cid, 6);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_req, recon_cnt, 10);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_req, path_uuid, 12);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_req, session_uuid, 28);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_req, first_conn, 44);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_req, ext_features, 45);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_req, ext_magic, 46);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_req, mac, 48);
static_assert(sizeof(struct ibtrs_wire_conn_rsp) == 56, "CONN_RSP");
IBTRS_ASSERT_OFF(ibtrs_wire_conn_rsp, err, 4);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_rsp, max_io_size, 8);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_rsp, flags, 16);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_rsp, ext_magic, 20);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_rsp, ext_features, 24);
IBTRS_ASSERT_OFF(ibtrs_wire_conn_rsp, mac, 28);
static_assert(sizeof(struct ibtrs_wire_conn_refused) == 148, "CONN_RSP with words");
IBTRS_ASSERT_OFF(ibtrs_wire_conn_refused, text, 56);
static_assert(sizeof(struct ibtrs_wire_verdict) == 192, "INFO_REFUSED, AUTH_VERDICT");
IBTRS_ASSERT_OFF(ibtrs_wire_verdict, err, 2);
IBTRS_ASSERT_OFF(ibtrs_wire_verdict, text, 8);
static_assert(sizeof(struct ibtrs_wire_info_req) == 272, "INFO_REQ");
static_assert(sizeof(struct ibtrs_wire_info_rsp) == 8, "INFO_RSP");
static_assert(sizeof(struct ibtrs_wire_desc) == 16, "descriptor");
static_assert(sizeof(struct ibtrs_wire_write) == 4, "WRITE");
static_assert(sizeof(struct ibtrs_wire_read) == 8, "READ");
static_assert(sizeof(struct ibtrs_wire_write_fenced) == 16, "WRITE_FENCED");
IBTRS_ASSERT_OFF(ibtrs_wire_write_fenced, token, 8);
static_assert(sizeof(struct ibtrs_wire_read_fenced) == 16, "READ_FENCED");
IBTRS_ASSERT_OFF(ibtrs_wire_read_fenced, token, 8);
static_assert(sizeof(struct ibtrs_wire_trial) == 24, "TRIAL");
IBTRS_ASSERT_OFF(ibtrs_wire_trial, desc, 8);
static_assert(sizeof(struct ibtrs_wire_rkey_rsp) == 8, "RKEY_RSP");
static_assert(sizeof(struct ibtrs_wire_auth_req) == 56, "AUTH_REQ");
IBTRS_ASSERT_OFF(ibtrs_wire_auth_req, magic, 2);
IBTRS_ASSERT_OFF(ibtrs_wire_auth_req, recon_cnt, 10);
IBTRS_ASSERT_OFF(ibtrs_wire_auth_req, path_uuid, 12);
IBTRS_ASSERT_OFF(ibtrs_wire_auth_req, session_uuid, 28);
IBTRS_ASSERT_OFF(ibtrs_wire_auth_req, ext_features, 45);
static_assert(sizeof(struct ibtrs_wire_auth_rsp) == 56, "AUTH_RSP");
static_assert(sizeof(struct ibtrs_wire_auth_hello) == 104, "AUTH_HELLO");
IBTRS_ASSERT_OFF(ibtrs_wire_auth_hello, nonce, 72);
static_assert(sizeof(struct ibtrs_wire_auth_challenge) == 104, "AUTH_CHALLENGE");
IBTRS_ASSERT_OFF(ibtrs_wire_auth_challenge, mac, 40);
static_assert(sizeof(struct ibtrs_wire_auth_proof) == 40, "AUTH_PROOF");
IBTRS_ASSERT_OFF(ibtrs_wire_auth_proof, mac, 8);

#endif
