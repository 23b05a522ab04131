/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose name is it? */
#ifndef IBTRS_SERVER_NAME_H
#define IBTRS_SERVER_NAME_H

#include "ibtrs/server/session.h"

/*
 * All under ibtrs_srv.lock.
 *
 * The session of @path, which has no name yet, is called @name from now on. Else -EEXIST (another
 * one's) or -EBUSY (one of the same client that is about to end), and @why, which may lie in @path.
 */
int ibtrs_srv_name_take(struct ibtrs_srv_path *path, const char *name, const char **why);
/* @s ends, or gives up its name, although its client may come back. */
void ibtrs_srv_name_keep(const struct ibtrs_srv_session *s);
/* Is @addr one of these? */
bool ibtrs_srv_name_peers_have(const struct ibtrs_srv_peers *peers, const struct ibtrs_addr *addr);
/* Is a name kept for a client that was lost, came from there, and has proved no key? */
bool ibtrs_srv_name_kept_for(const struct ibtrs_addr *addr);
/* The server closes: nobody's name is kept. */
void ibtrs_srv_name_forget_all(void);

#endif
