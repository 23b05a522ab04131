/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes maps.conf: only the lines that are meant; everything else stays the same, byte for byte.
 * A file is replaced whole (temporary file, fsync, rename) under a lock. Owner,
 * mode, ACL and security label stay. Making the same change again changes nothing. A change that
 * would make another mapping lose its line is refused.
 */
#ifndef TOOLS_MAPS_EDIT_H
#define TOOLS_MAPS_EDIT_H

#include "tools/conf/maps_conf.h"

/*
 * Write the entry to @file. If @file is NULL: to the file that already has a line of its name, else
 * to maps.conf.d/50-saved.conf.
 */
int maps_edit_save(const struct maps_entry *e, const char *file, bool reload);
/*
 * Count the mistakes before an edit. After it, maps_edit_check() prints all mistakes if there are
 * more than @before.
 */
size_t maps_edit_errors(const char *file);
int maps_edit_check(const char *file, size_t before);
/* Remove the line. SAY_NOTHING if no line has that name; no message is printed then. */
int maps_edit_remove(const char *name, const char *file, bool reload);
int maps_edit_remove_device(const char *session, const char *device_path, const char *file,
			    bool reload);

#endif
