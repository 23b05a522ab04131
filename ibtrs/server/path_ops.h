/* SPDX-License-Identifier: GPL-2.0-only */
/* The ops of a path that is closing. All callers may sleep. */
#ifndef IBTRS_SERVER_PATH_OPS_H
#define IBTRS_SERVER_PATH_OPS_H

#include <linux/types.h>

struct ibtrs_srv_path;

/* Close work: ends the parked ops of @path; they are not executed. */
void ibtrs_srv_path_ops_unpark(struct ibtrs_srv_path *path);
/*
 * True: the user works on ops of @path, and the client has given up all of them. @slot: slot of the
 * first such op. @path is stopped.
 */
bool ibtrs_srv_path_ops_only_given_up(const struct ibtrs_srv_path *path, u32 *slot);
/*
 * The client has no path on which it could give up what the ops of @path are for: tell the user to
 * do so (give_up()).
 */
void ibtrs_srv_path_ops_give_up(const struct ibtrs_srv_path *path);
/*
 * The ops of @path are given up: they leave their slots, as if they had ended, so that the
 * session's other paths can use the slots.
 */
void ibtrs_srv_path_ops_let_go(struct ibtrs_srv_path *path);
/*
 * True: an op of slot *@from or higher is busy; *@from becomes its slot. All ops before it are idle
 * and stay idle.
 */
bool ibtrs_srv_path_ops_any_busy(const struct ibtrs_srv_path *path, u32 *from);

#endif
