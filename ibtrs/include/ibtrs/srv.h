/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * IBTRS server API. The user registers once; nothing listens before ibtrs_srv_open(). For each
 * request it gets an *op*: a private copy of the user header and the data area of the slot's chunk.
 * Every op ends in exactly one ibtrs_srv_op_reply(), from any context, however late.
 */
#ifndef IBTRS_SRV_H
#define IBTRS_SRV_H

#include <linux/types.h>
#include <ibtrs/addr.h>
#include <ibtrs/dir.h>

struct ibtrs_srv_session;

/**
 * struct ibtrs_srv_op - a request, seen by the server
 * @session: where it came from
 * @dir: IBTRS_READ: fill @data with up to @data_len bytes, all of them are sent on success.
 *	IBTRS_WRITE: @data holds the client's bytes.
 * @service: the request came over the service connection (cid 0). It may be a message that takes
 *	long, but request() must never block
 * @hdr: private copy of the user header, @hdr_len bytes, valid until the reply
 * @data: chunk memory, physically contiguous, page aligned, @data_len bytes. The client can still
 *	write to it (always_invalidate=N): read each byte at most once before trusting it.
 * @priv: @op_priv_size bytes of the user's own, 8-byte aligned, not cleared
 * @group: 0 when request() is called. The user may set it until the reply; ibtrs then passes it to
 *	given_up() and give_up()
 */
struct ibtrs_srv_op {
	struct ibtrs_srv_session *session;
	enum ibtrs_dir dir;
	bool service;
	u16 hdr_len;
	u32 data_len;
	u32 group;
	const void *hdr;
	void *data;
	void *priv;
};

/* Which clients have to prove that they have a key (protocol.md 8.6). */
enum ibtrs_srv_auth {
	IBTRS_SRV_AUTH_OFF,		/* no client can */
	IBTRS_SRV_AUTH_OPTIONAL,	/* those that want to; in-kernel clients are let in */
	IBTRS_SRV_AUTH_REQUIRED,	/* everybody */
};

/**
 * enum ibtrs_srv_left - how a client left its session
 * @IBTRS_SRV_LEFT_CLOSED: it had closed all that it had opened
 * @IBTRS_SRV_LEFT_OPEN: something was open
 * @IBTRS_SRV_LEFT_UNUSED: it had never opened anything
 */
enum ibtrs_srv_left {
	IBTRS_SRV_LEFT_CLOSED,
	IBTRS_SRV_LEFT_OPEN,
	IBTRS_SRV_LEFT_UNUSED,
};

/**
 * struct ibtrs_srv_client - who has a session, as session_up() is told
 * @name: of the session; clients with different keys may have the same one
 * @label: what the log and sysfs call the session: its name, or NAME#2 and so on where sessions of
 *	other keys have that name
 * @key: name of the key by which all paths of the session are let in; empty: none was proved
 * @identity: IBTRS_UUID_LEN bytes. The same after a reconnect, different after a reboot of the
 *	client, which then chooses another uuid (protocol 1). If the client has proved a key, made
 *	of uuid and key: nobody without that key has it. Else the uuid that the client says
 */
struct ibtrs_srv_client {
	const char *name;
	const char *label;
	const char *key;
	const u8 *identity;
};

/**
 * struct ibtrs_srv_ops - the user of the server
 * @op_priv_size: bytes at op->priv
 * @peer_allowed: may a client connect from there at all? Called before any memory is spent. Must
 *	not sleep.
 * @auth: must clients prove that they have a key? Asked for each connection. Must not sleep.
 * @name_allowed: may a session of this name come from this address? Called before the name is
 *	looked up, so that a refused client learns nothing about other sessions. False: @why says
 *	why not. Must not sleep.
 * @session_up: first path of a session is ready. Return 0 and set @priv, or an errno to refuse.
 *	Process context, may sleep.
 * @peer_joins: may a path from this address join the session? Called before memory is spent on the
 *	path, before the path is let in, and again when ibtrs_srv_peer_each() includes the path,
 *	because the session may have been given something in between. Return 0, or an errno and a
 *	reason. Process context, must not wait for a disk.
 * @session_lost: the client has been away for long, but ops still run: release what none of these
 *	ops needs, so that others can use it. May be called more than once; the client may still
 *	come back. Process context, must not sleep.
 * @session_down: no path and no running op is left; the session is gone after it returns. If the
 *	client left something open, it may come back for it, so its name is kept for a while.
 *	Process context, may sleep.
 * @request: a request. Process context (workqueue); must not block on anything but memory and block
 *	layer back pressure. Ends in ibtrs_srv_op_reply(), now or later.
 * @given_up: will the client send no more requests of this op->group, and repeat none? Then ops of
 *	the group that still run, however long they take, do not keep the next incarnation of their
 *	path out. Process context, must not sleep.
 * @give_up: the client has had no path for long, and ops of this op->group keep the client out:
 *	close what these ops belong to, so that given_up() says yes. Process context, must not
 *	sleep.
 */
struct ibtrs_srv_ops {
	size_t op_priv_size;
	bool (*peer_allowed)(const struct ibtrs_origin *from);
	enum ibtrs_srv_auth (*auth)(void);
	bool (*name_allowed)(const struct ibtrs_origin *from, const char *name, const char **why);
	int (*session_up)(struct ibtrs_srv_session *s, const struct ibtrs_srv_client *c,
			  void **priv);
	int (*peer_joins)(void *priv, const struct ibtrs_origin *from, const char **why);
	void (*session_lost)(void *priv);
	enum ibtrs_srv_left (*session_down)(struct ibtrs_srv_session *s, void *priv);
	void (*request)(void *priv, struct ibtrs_srv_op *op);
	bool (*given_up)(void *priv, u32 group);
	void (*give_up)(void *priv, u32 group);
};

/**
 * ibtrs_srv_open() - start listening on all RDMA devices, those that come later included
 * @ops: callbacks; must stay until ibtrs_srv_close()
 * @port: host order
 * Return: 0, -EBUSY (already open), -EADDRINUSE (perhaps by the kernel's own rtrs-server), or what
 * the connection manager said.
 */
int ibtrs_srv_open(const struct ibtrs_srv_ops *ops, u16 port);
/*
 * Stop listening, close all paths, wait until every op was replied and every session_down ran.
 * Nothing is called back afterwards.
 */
void ibtrs_srv_close(void);

/**
 * ibtrs_srv_op_reply() - answer and give the op back; @op must not be touched afterwards
 * @err: 0 or negative errno; with 0 a read sends all of its data_len bytes
 *
 * Any context, softirq included. If the path is closing, the op ends without a reply.
 */
void ibtrs_srv_op_reply(struct ibtrs_srv_op *op, int err);
/* Is the path that @op came over up? If it is not, the reply goes nowhere. Any context. */
bool ibtrs_srv_op_answerable(const struct ibtrs_srv_op *op);

/*
 * Send an event (@kind: the user's, below 16) of device @id to the client (protocol 8.3), if it
 * negotiated EVENTS and a path is up. An event is only a hint: it may be lost. Any context.
 */
void ibtrs_srv_session_event(struct ibtrs_srv_session *s, u32 kind, u32 id);
/*
 * auth() says REQUIRED, or name_allowed() refuses more, from now on: close the paths that would not
 * be let in any more. Logs what it closes, does not wait until it has ended, and may be called
 * whether the server is open or not. Process context, sleeps.
 */
void ibtrs_srv_close_refused(void);
/* Does the session have a path that is up? Any context. */
bool ibtrs_srv_session_connected(struct ibtrs_srv_session *s);
/**
 * ibtrs_srv_peer_each() - each address that a session comes from now
 * @s: session that the user knows
 * @fn: called for the client's address of each path that is connected, or, when none is, for that
 *	of the session's first path; at least once. Must not sleep
 * @arg: of @fn
 *
 * Any context.
 */
void ibtrs_srv_peer_each(struct ibtrs_srv_session *s,
			 void (*fn)(void *arg, const struct ibtrs_origin *from), void *arg);

#endif
