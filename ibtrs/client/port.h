/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBTRS_CLIENT_PORT_H
#define IBTRS_CLIENT_PORT_H

struct ibtrs_clt_path;
struct rdma_cm_id;

int ibtrs_clt_port_init(void);
void ibtrs_clt_port_exit(void);
/*
 * After this call the path fails when the port that @id is bound to goes down. Call it from the CM
 * handler of cid 0, with a reference to the device.
 */
void ibtrs_clt_port_watch(struct ibtrs_clt_path *path, const struct rdma_cm_id *id);
/* Drain: the QPs of @path may be destroyed when this returns, after 1.5 s at most. */
void ibtrs_clt_port_settle(struct ibtrs_clt_path *path);
/*
 * Ends the watch, if there is one. Call it before ibtrs_dev_put(); no event comes after it has
 * returned.
 */
void ibtrs_clt_port_unwatch(struct ibtrs_clt_path *path);

#endif
