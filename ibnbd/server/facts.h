/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_FACTS_H
#define IBNBD_SERVER_FACTS_H

#include "ibnbd/server/export.h"

void ibnbd_srv_facts_exit(void);
void ibnbd_srv_facts_look_later(void);
void ibnbd_srv_facts_init_open(struct ibnbd_srv_open *open);
void ibnbd_srv_facts_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);
int ibnbd_srv_facts_resize(struct ibnbd_srv_export *e);

#endif
