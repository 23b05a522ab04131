/* SPDX-License-Identifier: GPL-2.0-only */
/* Mapping what a line of maps.conf says. */
#ifndef TOOLS_MAPS_RUN_H
#define TOOLS_MAPS_RUN_H

#include "tools/conf/maps_conf.h"
#include "tools/host/state.h"

/* The device of the line, NULL = not mapped. */
struct state_dev *maps_run_mapped(struct state *s, const struct maps_entry *e);
/*
 * Check that the mapped disk is the one of uuid= and size=. A wrong disk is worse than none: it is
 * unmapped again, with an error.
 */
int maps_run_verify(const struct maps_entry *e);
/*
 * Map the device of the line. Tries for @timeout seconds: 0 = once, MAPS_FOREVER = without end.
 * Prints the messages, and tells systemd if systemd listens.
 */
int maps_run_start(struct maps_entry *e, int64_t timeout);

#endif
