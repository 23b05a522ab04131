// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-stranger, second half: what is said on connections that a server has accepted, by somebody
 * who has no driver and no manners.
 *
 *	echo "name=other secret=HEX uuid=HEX" > whom	who it is: a key, or none; uuid= is that of
 *							somebody else's session
 *	echo "half 2; imm 0 10000; wait" > tell		one step after the other
 *	cat said					what came of it
 *	echo "SEED COUNT" > roam			as many connections and messages of any
 *							kind
 *	cat roamed					how many, and of them: connections that were
 *							accepted, paths that were let in, answers to
 *							requests; reads of the server's memory that
 *							were answered, which none may be
 *
 * Steps of tell:
 *
 * on N		what follows is of path N, of three; each has a session of its own
 * half N	a new path of N connections, without INFO_REQ
 * path N	the same, and INFO_REQ; says whether it was let in
 * info LEN	an INFO_REQ of that many bytes, on cid 0
 * imm CID HEX	an immediate, on that connection
 * send CID HEX	a message of so many zeros
 * open N	a read, in slot N, that opens ram0 read-only, and whose answer has nowhere to go
 * conn CID N	another CONN_REQ for the path, which has N connections in all as this one says
 * nap N		seconds in which nothing is said
 * hear		says what the server answers to INFO_REQ
 * poke, poke 1	another session's path writes to a chunk of this one, by its key and address; a
 *		path of this session that is not let in, and comes to the address `near`
 * wait, stay	says whether the server ends cid 0, within some seconds, within half of one
 *
 * Roaming draws from a seed: paths as above and connections whose CONN_REQ has any bytes, any
 * numbers, another's session or path, and any length; immediates, SENDs, INFO_REQs, keys to
 * invalidate, reads and writes at any address, requests of any slot, length and number, and many of
 * one slot. Some connections are deaf: they take no answer. A path has one session, both are known
 * by their number.
 *
 * Locking: stranger_lock. tests/cases/trust/wild-transport says what must come of it.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "ibnbd/proto/msg.h"
#include "ibtrs/core/key.h"
#include "ibtrs/logic/chunkmap.h"
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"
#include "tests/speak/stranger.h"

#define WILD_PATHS	3
#define WILD_CONNS	10
#define WILD_SESSION	0x40	/* each byte of the uuid of session 0 */
#define WILD_PATH	0x80
#define WILD_TRIES	40	/* while the path of before comes to its end */
#define WILD_FAR	(1ULL << 40)

struct wild_path {
	u16 recon;
	bool let_in, near;	/* near: it is of session 0, over another address */
	u64 token;
	struct ibtrs_auth auth;
	struct ibtrs_limits limits;
	struct ibtrs_chunk map[STRANGER_SLOTS];
	u32 rkey[STRANGER_SLOTS];
};

struct wild_conn {
	struct stranger_conn s;
	struct wild_path *path;
	u16 cid;
};

struct stranger_words me;
static struct wild_path paths[WILD_PATHS];
static struct wild_conn conns[WILD_CONNS];
static bool roaming;
static unsigned int nr_done, nr_accepted, nr_let_in, nr_answers, nr_fetched;

static u8 wild_nr(const struct wild_path *p)
{
	return p - paths;
}

/* ---- connections -------------------------------------------------------- */

static void wild_leave(struct wild_conn *c)
{
	nr_answers += c->s.answers;
	nr_fetched += c->s.fetched;
	stranger_leave(&c->s);
	c->path = NULL;
}

static void wild_leave_path(const struct wild_path *p)	/* NULL: all */
{
	unsigned int i;

	for (i = 0; i < WILD_CONNS; i++)
		if (!p || conns[i].path == p)
			wild_leave(&conns[i]);
}

void wild_leave_all(void)
{
	wild_leave_path(NULL);
}

static struct wild_conn *wild_find(const struct wild_path *p, u16 cid)
{
	unsigned int i;

	for (i = 0; i < WILD_CONNS; i++)
		if (conns[i].path == p && conns[i].cid == cid)
			return &conns[i];
	return NULL;
}

static struct wild_conn *wild_place(void)
{
	unsigned int i;

	for (i = 0; i < WILD_CONNS; i++)
		if (!conns[i].path)
			return &conns[i];
	i = any(WILD_CONNS);
	wild_leave(&conns[i]);
	return &conns[i];
}

static void wild_words(const struct wild_path *p, struct stranger_words *w)
{
	*w = me;
	memset(w->uuid, 0, sizeof(w->uuid));
	w->session = WILD_SESSION + wild_nr(p);
	w->path = WILD_PATH + wild_nr(p);
	w->recon = p->recon;
}

static void wild_req(struct wild_path *p, u16 cid, u16 nr, struct ibtrs_wire_conn_req *wire)
{
	struct ibtrs_conn_req req = {
		.cid		= cid,
		.cid_num	= nr,
		.recon_cnt	= p->recon,
		.first_conn	= true,
		.ext		= me.name[0] ? IBTRS_EXT_KNOWN : IBTRS_EXT_OFFERED,
	};

	memset(req.session_uuid, WILD_SESSION + (p->near ? 0 : wild_nr(p)), IBTRS_UUID_LEN);
	memset(req.path_uuid, WILD_PATH + wild_nr(p), sizeof(req.path_uuid));
	ibtrs_msg_conn_req_encode(wire, &req);
	if (me.name[0])
		ibtrs_auth_req_sign(&ibtrs_auth_kernel, p->auth.ks, wire);
}

/* *@err_of_rej: what the server said, if that was no. */
static int wild_connect(struct wild_path *p, u16 cid, const void *req, u8 len, int *err_of_rej)
{
	struct wild_conn *c = wild_place();
	struct ibtrs_conn_rsp rsp;
	const char *why;
	int err;

	err = stranger_connect(&c->s, p->near ? stranger_near : stranger_to, req, len);
	*err_of_rej = 0;
	if (err) {
		if (err == -ECONNREFUSED &&
		    !ibtrs_msg_conn_rsp_decode(c->s.priv, c->s.priv_len, true, true, &rsp, &why))
			*err_of_rej = rsp.err;
		stranger_say("cid %u: ", cid);
		stranger_say_refused(&c->s, err);
		wild_leave(c);
		return err;
	}
	stranger_say("cid %u: accepted\n", cid);
	nr_accepted++;
	c->path = p;
	c->cid = cid;
	c->s.rkey = p->rkey;
	return roaming && !any(16) ? 0 : stranger_listen(&c->s);
}

/* With a key the first connection needs a new proof each time. */
static int wild_first(struct wild_path *p, u16 nr)
{
	struct ibtrs_wire_conn_req wire;
	struct stranger_words w;
	int err, rej, i;

	for (i = 0; i < WILD_TRIES; i++) {
		p->recon++;
		stranger_silence();
		wild_words(p, &w);
		if (me.name[0])
			stranger_auth(&w, &p->auth);
		wild_req(p, 0, nr, &wire);
		err = wild_connect(p, 0, &wire, sizeof(wire), &rej);
		nr_done += me.name[0] ? 3 : 1;
		if (rej != -EBUSY)
			return err;
		msleep(50);
	}
	return err;
}

static int wild_half(struct wild_path *p, u16 nr)
{
	struct ibtrs_wire_conn_req wire;
	struct ibtrs_conn_rsp rsp = {};
	struct wild_conn *first;
	const char *why;
	int err, rej;
	u16 cid;

	wild_leave_path(p);
	p->let_in = false;
	memset(p->rkey, 0, sizeof(p->rkey));
	err = wild_first(p, nr);
	for (cid = 1; cid < nr && !err; cid++) {
		wild_req(p, cid, nr, &wire);
		err = wild_connect(p, cid, &wire, sizeof(wire), &rej);
		nr_done++;
	}
	first = wild_find(p, 0);
	if (err || !first)
		return err ?: -ENOTCONN;
	err = ibtrs_msg_conn_rsp_decode(first->s.priv, first->s.priv_len, false, true, &rsp, &why);
	p->limits = rsp.limits;
	p->limits.fence = true;
	return err;
}

/* ---- messages ----------------------------------------------------------- */

static int wild_info(struct wild_conn *c, u32 len, bool spoilt)
{
	char name[] = "wild0";
	struct ib_sge sge;
	u8 *m = stranger_room(&c->s, &sge);

	name[4] += wild_nr(c->path) + (me.name[0] ? 0 : 5);	/* two clients */
	ibtrs_msg_info_req_encode((void *)m, name);
	if (spoilt)
		stranger_spoil(m, sizeof(struct ibtrs_wire_info_req));
	return stranger_post_send(&c->s, &sge, len, false);
}

/* What the server says to INFO_REQ. */
static int wild_let_in(struct wild_conn *c)
{
	struct ibtrs_wire_info_rsp *rsp = c->s.in.buf;
	struct wild_path *p = c->path;
	char text[IBTRS_WORDS_LEN];
	const char *why;
	u16 sg_cnt;
	u32 life;
	int err;

	if (!wait_for_completion_timeout(&c->s.came, msecs_to_jiffies(STRANGER_MS)))
		return -ETIME;
	if (c->s.len < 0)
		return c->s.len;
	ibtrs_iu_sync_cpu(&c->s.in);
	if (ibtrs_msg_info_refused_decode(rsp, c->s.len, &err, text)) {
		stranger_say("refused %d %s\n", -err, text);
		return -ECONNREFUSED;
	}
	err = p->limits.queue_depth > STRANGER_SLOTS ? -E2BIG : 0;
	err = err ?: ibtrs_msg_info_rsp_decode(rsp, c->s.len, &sg_cnt, &life, &why);
	err = err ?: ibtrs_chunkmap_build(rsp->desc, sg_cnt, &p->limits, p->map, &why);
	if (!err) {
		p->let_in = true;
		nr_let_in++;
		stranger_say("let in\n");
	}
	return err;
}

/* A path, and INFO_REQ, which the server answers. */
static int wild_whole(struct wild_path *p, u16 nr)
{
	int err = wild_half(p, nr);
	struct wild_conn *c = wild_find(p, 0);

	err = err ?: wild_info(c, sizeof(struct ibtrs_wire_info_req), false);
	return err ?: wild_let_in(c);
}

/* ---- roaming ------------------------------------------------------------ */

static void wild_any_conn(void)
{
	struct wild_path *p = &paths[any(WILD_PATHS)], *other = &paths[any(WILD_PATHS)];
	u16 cid = any(5), nr = any(8) ? 2 : any(6);
	struct ibtrs_wire_conn_req wire;
	u8 len = sizeof(wire);
	int rej;

	wild_req(p, cid, nr, &wire);
	switch (any(6)) {
	case 0:
		memcpy(wire.session_uuid, me.uuid, sizeof(wire.session_uuid));
		break;
	case 1:
		memset(wire.path_uuid, WILD_PATH + wild_nr(other), sizeof(wire.path_uuid));
		break;
	case 2:
		memset(wire.session_uuid, WILD_SESSION + wild_nr(other), sizeof(wire.session_uuid));
		break;
	case 3:
		stranger_spoil((u8 *)&wire, sizeof(wire));
		break;
	case 4:
		len = any(sizeof(wire) + 1);
		break;
	}
	if (any(2) && me.name[0])
		ibtrs_auth_req_sign(&ibtrs_auth_kernel, p->auth.ks, &wire);
	wild_connect(p, cid, &wire, len, &rej);
	nr_done++;
}

static void wild_any_path(void)
{
	struct wild_path *p = &paths[any(WILD_PATHS)];
	bool spoilt = !any(6);
	struct wild_conn *c;

	if (wild_half(p, 1 + any(3)) || !any(8))
		return;
	c = wild_find(p, 0);
	wild_info(c, any(8) ? sizeof(struct ibtrs_wire_info_req) : any(512), spoilt);
	nr_done++;
	wild_let_in(c);
}

/* In a chunk: data, the user's header, the header, each of any kind; then the immediate. */
static int wild_request(struct wild_conn *c, u32 slot, bool spoilt)
{
	struct wild_path *p = c->path;
	u32 data = any(3) * 512, usr = 4 + any(64), off = data + usr, len;
	unsigned int bits = ibtrs_imm_off_bits(p->limits.queue_depth);
	struct ibtrs_desc desc = { .addr = any(2) ? 0 : prandom_u32_state(&stranger_rnd),
				   .rkey = prandom_u32_state(&stranger_rnd),
				   .len = any(4) ? data : prandom_u32_state(&stranger_rnd) };
	u64 token = ++p->token + (any(48) ? 0 : WILD_FAR);
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM };
	struct ib_sge sge;
	u8 *m = stranger_room(&c->s, &sge);

	prandom_bytes_state(&stranger_rnd, m, off);
	*(__le16 *)(m + data) = cpu_to_le16(any(10));
	if (any(spoilt ? 3 : 12))
		len = ibtrs_msg_write_encode(m + off, p->limits.fence, usr, token);
	else
		len = ibtrs_msg_read_encode(m + off, p->limits.fence, usr, token, any(2),
					    any(4) ? &desc : NULL);
	if (spoilt)
		stranger_spoil(m + off, len);
	slot %= p->limits.queue_depth;
	wr.wr.ex.imm_data =
		cpu_to_be32(ibtrs_imm_req(slot, spoilt && !any(4) ? any(1u << bits) : off, bits));
	wr.remote_addr = p->map[slot].addr;
	wr.rkey = p->rkey[slot] ?: p->map[slot].rkey;
	sge.length = off + len;
	return stranger_post(&c->s, &wr.wr, &sge);
}

static int wild_open(struct wild_conn *c, u32 slot)
{
	const struct ibnbd_open ram0 = { .access = IBNBD_ACCESS_RO, .name = "ram0" };
	u32 data = sizeof(struct ibnbd_wire_open_rsp_dur);
	u32 off = data + sizeof(struct ibnbd_wire_open);
	struct wild_path *p = c->path;
	struct ibtrs_desc desc = { .rkey = 1, .len = data };
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM };
	struct ib_sge sge;
	u8 *m = stranger_room(&c->s, &sge);
	int err = ibnbd_msg_open_encode((void *)m + data, &ram0);

	sge.length = off + ibtrs_msg_read_encode(m + off, p->limits.fence,
						 sizeof(struct ibnbd_wire_open), ++p->token, false,
						 &desc);
	wr.wr.ex.imm_data =
		cpu_to_be32(ibtrs_imm_req(slot, off, ibtrs_imm_off_bits(p->limits.queue_depth)));
	wr.remote_addr = p->map[slot].addr;
	wr.rkey = p->map[slot].rkey;
	return err ?: stranger_post(&c->s, &wr.wr, &sge);
}

static int wild_poke(const struct wild_path *victim, struct wild_path *p, bool near)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE,
				 .remote_addr = victim->map[0].addr,
				 .rkey = victim->map[0].rkey };
	struct wild_conn *c;
	struct ib_sge sge;
	int err;

	p->near = near;
	err = !victim->let_in ? -ENOTCONN : near ? wild_half(p, 1) : wild_whole(p, 1);
	p->near = false;
	if (err)
		return err;
	c = wild_find(p, 0);
	stranger_room(&c->s, &sge);
	sge.length = 64;
	err = stranger_post(&c->s, &wr.wr, &sge);
	if (!err)
		stranger_say("%s\n", stranger_ended(&c->s, STRANGER_MS / 4) ? "ended" : "open");
	return err;
}

/* What is no business of a client: reading, writing elsewhere, other's keys. */
static int wild_memory(struct wild_conn *c)
{
	struct wild_path *p = any(4) ? c->path : &paths[any(WILD_PATHS)];
	u32 slot = any(max(min_t(u32, p->limits.queue_depth, STRANGER_SLOTS), 1u));
	struct ib_atomic_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE };
	struct ib_rdma_wr rdma = { .wr.opcode = any(2) ? IB_WR_RDMA_READ : IB_WR_RDMA_WRITE };
	u64 addr = p->map[slot].addr + (any(2) ? 0 : (u64)any(64) * p->limits.chunk_size - 8);
	u32 rkey = any(4) ? p->map[slot].rkey : prandom_u32_state(&stranger_rnd);
	struct ib_sge sge;

	stranger_room(&c->s, &sge);
	if (!any(3)) {
		wr.wr.opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
		wr.remote_addr = addr & ~7ull;
		wr.rkey = rkey;
		wr.compare_add = 1;
		sge.length = 8;
		return stranger_post(&c->s, &wr.wr, &sge);
	}
	rdma.remote_addr = addr;
	rdma.rkey = rkey;
	sge.length = 16 + any(1024);
	return stranger_post(&c->s, &rdma.wr, &sge);
}

static int wild_invalidate(struct wild_conn *c)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV };
	u32 slot = any(STRANGER_SLOTS);

	wr.ex.invalidate_rkey = any(4) ? c->path->map[slot].rkey : prandom_u32_state(&stranger_rnd);
	return stranger_post(&c->s, &wr, NULL);
}

/* What a driver says: with such the path lives a while. */
static void wild_nearly_good(struct wild_conn *c)
{
	u32 slot = any(STRANGER_SLOTS), n;

	switch (any(8)) {
	case 0:
		stranger_post_imm(&c->s,
				  ibtrs_imm_hb(any(2) ? IBTRS_IMM_HB_MSG : IBTRS_IMM_HB_ACK));
		break;
	case 1:
		stranger_post_imm(&c->s, (12 + any(4)) << IBTRS_IMM_PAYLOAD_BITS | any(1 << 20));
		break;
	case 2:
		for (n = any(4); n && c->path->let_in; n--, nr_done++)
			wild_request(c, slot, false);
		break;
	default:
		if (c->path->let_in)
			wild_request(c, any(STRANGER_SLOTS), false);
	}
}

static void wild_nonsense(struct wild_conn *c)
{
	struct ib_sge sge;

	switch (any(8)) {
	case 0:
		stranger_post_imm(&c->s, prandom_u32_state(&stranger_rnd));
		break;
	case 1:
		stranger_post_imm(&c->s, any(16) << IBTRS_IMM_PAYLOAD_BITS | any(1 << 20));
		break;
	case 2:
		prandom_bytes_state(&stranger_rnd, stranger_room(&c->s, &sge),
				    STRANGER_ROOM);
		stranger_post_send(&c->s, &sge, any(STRANGER_ROOM), any(2));
		break;
	case 3:
		wild_info(c, any(2) ? sizeof(struct ibtrs_wire_info_req) : any(512), any(2));
		break;
	case 4:
		wild_memory(c);
		break;
	case 5:
		wild_invalidate(c);
		break;
	default:
		if (c->path->let_in)
			wild_request(c, any(STRANGER_SLOTS), true);
		break;
	}
}

static void wild_roam_once(void)
{
	struct wild_conn *c = &conns[any(WILD_CONNS)];

	if (!any(20)) {
		wild_any_conn();
	} else if (!c->path) {
		if (!any(4))
			wild_any_path();
	} else if (READ_ONCE(c->s.gone) || !any(64)) {
		wild_leave(c);
	} else {
		nr_done++;
		if (any(8))
			wild_nearly_good(c);
		else
			wild_nonsense(c);
	}
}

static int roam_set(const char *val, const struct kernel_param *kp)
{
	unsigned int seed, n;

	if (sscanf(val, "%u %u", &seed, &n) != 2)
		return -EINVAL;
	guard(mutex)(&stranger_lock);
	prandom_seed_state(&stranger_rnd, seed);
	roaming = true;
	nr_done = nr_accepted = nr_let_in = nr_answers = nr_fetched = 0;
	while (nr_done < n && !signal_pending(current)) {
		stranger_silence();
		wild_roam_once();
		cond_resched();
	}
	roaming = false;
	wild_leave_all();
	stranger_silence();
	return 0;
}

static const struct kernel_param_ops roam_ops = { .set = roam_set };
module_param_cb(roam, &roam_ops, NULL, 0200);

static int roamed_get(char *text, const struct kernel_param *kp)
{
	guard(mutex)(&stranger_lock);
	return sysfs_emit(text, "%u %u %u %u %u\n", nr_done, nr_accepted, nr_let_in, nr_answers,
			  nr_fetched);
}

static const struct kernel_param_ops roamed_ops = { .get = roamed_get };
module_param_cb(roamed, &roamed_ops, NULL, 0444);

/* ---- step by step ------------------------------------------------------- */

static int wild_step(const char *word, u32 a, u32 b, struct wild_path *p)
{
	struct ibtrs_wire_conn_req wire;
	struct wild_path *to;
	struct wild_conn *c;
	struct ib_sge sge;
	int rej, err;

	if (!strcmp(word, "nap")) {
		ssleep(a);
		return 0;
	}
	if (!strcmp(word, "half"))
		return wild_half(p, a);
	if (!strcmp(word, "path"))
		return wild_whole(p, a);
	if (!strcmp(word, "poke"))
		return wild_poke(p, &paths[1], a);
	if (!strcmp(word, "conn") || !strcmp(word, "cross")) {
		/* cross: a connection of path 1 with a good proof of path 0 */
		to = word[1] == 'r' ? &paths[1] : p;
		err = to == p ? 0 : wild_first(to, b);
		wild_req(to, a, b, &wire);
		if (to != p)
			ibtrs_auth_req_sign(&ibtrs_auth_kernel, p->auth.ks, &wire);
		wild_connect(to, a, &wire, sizeof(wire), &rej);
		return err;
	}
	c = wild_find(p, strcmp(word, "info") && strcmp(word, "open") ? a : 0);
	if (!c)
		return -ENOTCONN;
	if (!strcmp(word, "info"))
		return wild_info(c, a, false);
	if (!strcmp(word, "imm"))
		return stranger_post_imm(&c->s, b);
	if (!strcmp(word, "open"))
		return wild_open(c, a);
	if (!strcmp(word, "send")) {
		stranger_room(&c->s, &sge);
		return stranger_post_send(&c->s, &sge, b, false);
	}
	if (!strcmp(word, "hear")) {
		wild_let_in(c);
		return 0;
	}
	if (strcmp(word, "wait") && strcmp(word, "stay"))
		return -EINVAL;
	stranger_say("%s\n", stranger_ended(&c->s, *word == 'w' ? STRANGER_MS : 500) ? "ended" :
											"open");
	return 0;
}

static int tell_set(const char *val, const struct kernel_param *kp)
{
	char *text = kstrdup(val, GFP_KERNEL), *rest, *step, word[8];
	struct wild_path *p = &paths[0];
	int err = 0;
	u32 a, b;

	if (!text)
		return -ENOMEM;
	guard(mutex)(&stranger_lock);
	prandom_seed_state(&stranger_rnd, 1);
	wild_leave_all();
	stranger_silence();
	rest = strim(text);
	while (!err && (step = strsep(&rest, ";"))) {
		a = b = 0;
		if (sscanf(step, " %7s %u %x", word, &a, &b) < 1)
			err = -EINVAL;
		if (!err && !strcmp(word, "on") && a < WILD_PATHS)
			p = &paths[a];
		else
			err = err ?: wild_step(word, a, b, p);
	}
	kfree(text);
	return err;
}

static const struct kernel_param_ops tell_ops = { .set = tell_set };
module_param_cb(tell, &tell_ops, NULL, 0200);

static int whom_set(const char *val, const struct kernel_param *kp)
{
	guard(mutex)(&stranger_lock);
	memset(&me, 0, sizeof(me));
	return stranger_words_read(val, &me);
}

static const struct kernel_param_ops whom_ops = { .set = whom_set };
module_param_cb(whom, &whom_ops, NULL, 0200);
