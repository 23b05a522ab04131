/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a change of maps.conf does to its texts, and whether anything is lost by it. Pure: texts in,
 * texts out; maps_edit.c reads and writes the files.
 *
 * Law (tests/fuzz/fuzz_maps_edit.c): a mapping that was good before a change, and that is not the
 * one to be changed, is good after it, and the same.
 */
#ifndef TOOLS_MAPS_PLAN_H
#define TOOLS_MAPS_PLAN_H

#include "tools/conf/maps_conf.h"

/* A piece of a file is replaced by a line. */
struct maps_change {
	struct maps_at at;	/* len 0 = added at the end of the file */
	char *line;		/* without newline; NULL = nothing */
	char *name;		/* of the mapping */
};

/**
 * struct maps_plan - all changes that one order makes
 * @changes: the first is what was asked for; the others keep lines of the same session good
 * @made: index of the file that is created, SIZE_MAX = none
 * @unsaid: why the line that was asked for would mean something else, NULL = it does not
 */
struct maps_plan {
	struct maps_change *changes;
	size_t nr, made;
	char *unsaid;
};

void maps_plan_init(struct maps_plan *p);
void maps_plan_free(struct maps_plan *p);

/* The valid line of that name, else the last of its lines with mistakes. NULL: there is none. */
struct maps_entry *maps_plan_find(struct maps *m, const char *name);
/*
 * Plan to put @e in the place of @old (NULL: at the end of @file). Options that a command line
 * cannot give are taken from @old, which still owns their texts; so are the paths if @e has none.
 * Values of @e that [defaults] of the file would change are marked as given, so the line has them.
 * If nothing changes the plan is empty.
 */
void maps_plan_save(struct maps_plan *p, const struct maps *m, struct maps_entry *e,
		    const struct maps_entry *old, size_t file);
void maps_plan_remove(struct maps_plan *p, const struct maps *m, const struct maps_entry *e);

/* The text of @file after the change. Allocated. */
char *maps_plan_text(const struct maps_plan *p, const struct maps *m, size_t file, size_t *len);
/* All files after the change, parsed and checked. */
struct maps *maps_plan_after(const struct maps_plan *p, const struct maps *m);
/*
 * Which mapping would lose its line in @after or change its meaning, and why: in words, allocated.
 * NULL = none.
 */
char *maps_plan_lost(const struct maps_plan *p, struct maps *m, struct maps *after);

#endif
