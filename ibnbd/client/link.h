/* SPDX-License-Identifier: GPL-2.0-only */
/* How link news gets from the transport to the devices of a session. */
#ifndef IBNBD_CLIENT_LINK_H
#define IBNBD_CLIENT_LINK_H

#include "ibnbd/client/session.h"

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
u32 ibnbd_clt_link_gen(struct ibnbd_clt_session *s);
bool ibnbd_clt_link_up(struct ibnbd_clt_session *s);

#endif
