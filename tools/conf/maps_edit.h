/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changing maps.conf: only the lines that are meant, everything else stays byte for byte. A file is
 * replaced whole (temporary file, fsync, rename) under a lock of the directory; owner, mode, ACL
 * and security label stay. The same change twice is no change. A change that would cost another
 * mapping its line is refused.
 */
#ifndef TOOLS_MAPS_EDIT_H
#define TOOLS_MAPS_EDIT_H

#include "tools/conf/maps_conf.h"

/*
 * Write the entry to @file. If @file is NULL: to the file that has its name already, else to
 * maps.conf.d/50-saved.conf.
 */
int maps_edit_save(const struct maps_entry *e, const char *file, bool reload);
/* Mistakes that there are; and behind an edit: are there more than before? Then they are said. */
size_t maps_edit_errors(const char *file);
int maps_edit_check(const char *file, size_t before);
/* SAY_NOTHING when no line has that name; without a word. */
int maps_edit_remove(const char *name, const char *file, bool reload);
int maps_edit_remove_device(const char *session, const char *device_path, const char *file,
			    bool reload);

#endif
