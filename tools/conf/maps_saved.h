/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Edits of the files of maps.conf by --save and --forget. Pure: texts in, texts out; maps_store.c
 * reads and writes the files.
 *
 * A saved mapping has a file of its own, maps.conf.d/NAME.conf: a first line by which the command
 * knows it, and the line of the mapping. The command writes such a file anew, and no other. What is
 * in the way in another file is named with its line.
 *
 * Law (tests/fuzz/fuzz_maps_saved.c): after a change each good mapping is good and means what it
 * meant before, except for the one to be changed, and for what a session has in common.
 */
#ifndef TOOLS_MAPS_SAVED_H
#define TOOLS_MAPS_SAVED_H

#include "tools/conf/maps_conf.h"

/* In the file NAME.conf of this name earlier versions saved all mappings. */
#define MAPS_SAVED_OLD_NAME	"50-saved"
/* The first line of a saved file begins with it. */
#define MAPS_SAVED_MARK	"# Saved by ibnbd"

/**
 * struct maps_saved - a change
 * @m: the files as they are
 * @will: the entries as they will be: copies that own nothing. Their line.file is the index of the
 *	file that will have them, or MAPS_SAVED_GONE
 * @loaded: how many files of @m there were before the change
 * @touched: for each file of @m: its text changes
 */
struct maps_saved {
	struct maps *m;
	const char *dir;
	struct maps_entry *will;
	size_t nr, loaded;
	bool *touched;
};

#define MAPS_SAVED_GONE	SIZE_MAX

/* @dir: where a file NAME.conf is made. @m must outlive the change. */
void maps_saved_init(struct maps_saved *s, struct maps *m, const char *dir);
void maps_saved_free(struct maps_saved *s);

/* The valid line of that name, else the last of its lines with mistakes. NULL: there is none. */
struct maps_entry *maps_saved_find(struct maps_saved *s, const char *name);

/*
 * Each of these changes @s, or returns why it cannot, allocated, with a hint or NULL in @hint.
 *
 * Move each line of that old file to a file of its own. @old: its index; SIZE_MAX = there is
 * nothing to move.
 */
char *maps_saved_split(struct maps_saved *s, size_t *old, char **hint);
/*
 * Save @e in its file, or in @file if that is not NULL. Options that a command line cannot give
 * are kept. @live: it is what runs, so the other saved lines of its session get the same paths and
 * options of the session. If nothing changes no file is touched.
 */
char *maps_saved_put(struct maps_saved *s, struct maps_entry *e, const char *file, bool live,
		     char **hint);
char *maps_saved_remove(struct maps_saved *s, struct maps_entry *e, char **hint);
/* Would a mapping lose its line, or mean something else? */
char *maps_saved_lost(const struct maps_saved *s, char **hint);

/* The text of a touched file, allocated; NULL = no line is left in it. */
char *maps_saved_text(const struct maps_saved *s, size_t file);
/* All files after the change, parsed and checked. */
struct maps *maps_saved_after(const struct maps_saved *s);

#endif
