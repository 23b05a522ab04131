/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBTRS_CLIENT_PORT_H
#define IBTRS_CLIENT_PORT_H

struct ibtrs_clt_path;
struct rdma_cm_id;

int ibtrs_clt_port_init(void);
void ibtrs_clt_port_exit(void);
/*
 * From here on the path fails when the port that @id is bound to goes down. Its device is held; CM
 * handler of cid 0.
 */
void ibtrs_clt_port_watch(struct ibtrs_clt_path *path, const struct rdma_cm_id *id);
/* Drain: the QPs of @path may be destroyed when this returns, after 1.5 s at most. */
void ibtrs_clt_port_settle(struct ibtrs_clt_path *path);
/*
 * The opposite of watch; nothing to do when it never came so far. Before the device is let go; no
 * event comes after it returned.
 */
void ibtrs_clt_port_unwatch(struct ibtrs_clt_path *path);

#endif
