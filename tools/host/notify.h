/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages to systemd about a service (sd_notify(3)). A process that systemd has not started as a
 * service of Type=notify sends nothing.
 */
#ifndef TOOLS_NOTIFY_H
#define TOOLS_NOTIFY_H

#include <stdbool.h>

/* Call it once, before the others. */
void notify_open(void);
bool notify_on(void);
/* Needs no memory. A text of more than 511 bytes is cut. */
void notify_systemd(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
