/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_REFUSE_H
#define IBNBD_SERVER_REFUSE_H

void ibnbd_srv_refuse(const char *session, const char *object, int err, const char *why);
int ibnbd_srv_last_error(char *page);

#endif
