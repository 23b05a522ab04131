/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Saves mappings below maps.conf.d, one file for each, and forgets them (maps_saved.h), under a
 * lock. No file is changed that a person wrote, and no change makes another mapping lose its line:
 * both are refused, with an error. All return the exit status.
 */
#ifndef TOOLS_MAPS_STORE_H
#define TOOLS_MAPS_STORE_H

#include "tools/conf/maps_conf.h"

/* @file: in place of maps.conf.d/NAME.conf. @live: see maps_saved_put(). */
int maps_store_save(const struct maps_entry *e, const char *file, bool live, bool reload);
/* SAY_NOTHING if no line has that name; no message is printed then. */
int maps_store_remove(const char *name, const char *file, bool reload);
/* The same for the line of a device, if there is one. */
int maps_store_forget(const char *session, const char *device_path, const char *file, bool reload);
/* Give each mapping of the file of earlier versions, 50-saved.conf, a file of its own. */
int maps_store_tidy(bool reload);

#endif
