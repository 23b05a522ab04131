/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_CLIENT_REFUSE_H
#define IBNBD_CLIENT_REFUSE_H

/*
 * Log the refusal of something an administrator wrote, keep it for ctl/last_error, and return @err.
 */
__printf(2, 3) int ibnbd_clt_refuse(int err, const char *fmt, ...);
void ibnbd_clt_refuse_forget(void);
/* Writes the last refusal to @page. Return: its length. */
int ibnbd_clt_refuse_show(char *page);

#endif
