/* SPDX-License-Identifier: GPL-2.0-only */
/* A line of maps.conf at work. */
#ifndef TOOLS_MAPS_RUN_H
#define TOOLS_MAPS_RUN_H

#include "tools/conf/maps_conf.h"
#include "tools/host/state.h"

/* Its device, NULL = not mapped. */
struct state_dev *maps_run_mapped(struct state *s, const struct maps_entry *e);
/*
 * The wrong disk is worse than none: is this the one of uuid= and size=? If not, it is unmapped
 * again, with an error.
 */
int maps_run_verify(const struct maps_entry *e);
/*
 * Map it, trying for @timeout seconds: 0 = once, MAPS_FOREVER. With its messages; tells systemd
 * when that listens.
 */
int maps_run_start(struct maps_entry *e, int64_t timeout);

#endif
