/* SPDX-License-Identifier: GPL-2.0-only */
/* How link news gets from the transport to the devices of a session; the messages beside I/O. */
#ifndef IBNBD_CLIENT_LINK_H
#define IBNBD_CLIENT_LINK_H

#include "ibnbd/client/dev.h"
#include "ibnbd/proto/msg.h"

extern const struct ibtrs_clt_ops ibnbd_clt_link_ops;

/* A session that is not connected yet; link 1 is the one that ibtrs_clt_connect() returns with. */
void ibnbd_clt_link_init(struct ibnbd_clt_session *s);
/* SESS_INFO. @gen: the link on which we ask. */
int ibnbd_clt_link_ask(struct ibnbd_clt_session *s, u32 gen, const char **why);
/*
 * The server may still have @dev open, which is being removed: notes its id. CLOSE is sent for that
 * id before anything else is opened.
 */
void ibnbd_clt_link_unclosed(struct ibnbd_clt_session *s, struct ibnbd_clt_dev *dev);
/* Sends these CLOSEs now. 0, or the error that kept us from reaching the server. */
int ibnbd_clt_link_settle(struct ibnbd_clt_session *s);
void ibnbd_clt_link_forget_unclosed(struct ibnbd_clt_session *s);
/*
 * listen: link news is acted upon from here on, including news that came while the session was
 * being set up. unlisten: news is not acted upon any more.
 */
void ibnbd_clt_link_listen(struct ibnbd_clt_session *s);
void ibnbd_clt_link_unlisten(struct ibnbd_clt_session *s);

/* join: the device hears of link events from here on. leave: it does not any more. */
void ibnbd_clt_link_join(struct ibnbd_clt_session *s, struct ibnbd_clt_dev *dev);
void ibnbd_clt_link_leave(struct ibnbd_clt_session *s, struct ibnbd_clt_dev *dev);

/**
 * ibnbd_clt_link_get() - is the session usable, and since when?
 * @gen: the link's number; compare it with ibnbd_clt_link_gen() before believing an answer
 * @version: negotiated
 * @features: negotiated
 *
 * Return: false while no path is up or SESS_INFO is not answered yet.
 */
bool ibnbd_clt_link_get(struct ibnbd_clt_session *s, u32 *gen, u8 *version, u64 *features);

static inline u32 ibnbd_clt_link_gen(struct ibnbd_clt_session *s)
{
	return READ_ONCE(s->gen);
}

static inline bool ibnbd_clt_link_up(struct ibnbd_clt_session *s)
{
	return READ_ONCE(s->up);
}

/*
 * OPEN and CLOSE. Return 0, the errno of the server, what ibtrs_clt_call() returned, or -EPROTO for
 * an answer that makes no sense, with the reason in *why. Otherwise *why is NULL, except for an
 * OPEN that the server refused in words: *why then points into dev->said, and is a text of the
 * peer. The answer to OPEN is in @g, which has features and link_gen.
 *
 * link_gen: the link on which the caller decided to send it, as ibtrs_clt_gen() counts. On another
 * link it is not sent, and the error is -ENOTCONN.
 */
int ibnbd_clt_link_send_open(struct ibnbd_clt_dev *dev, struct ibnbd_clt_grant *g,
			     unsigned int timeout_ms, const char **why);
int ibnbd_clt_link_send_close(struct ibtrs_clt *clt, u32 link_gen, u32 device_id, bool nowait,
			      unsigned int timeout_ms);
/* True if @err says that we got no answer from the server; false if the server refused. */
bool ibnbd_clt_link_unreached(int err);

#endif
