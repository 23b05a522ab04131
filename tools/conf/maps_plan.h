/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a change of maps.conf does to its texts, and whether anything is lost by it. Pure: texts in,
 * texts out; maps_edit.c has the files.
 *
 * Law (tests/fuzz/fuzz_maps_edit.c): a mapping that was good before a change and is not what is
 * changed is good behind it, and the same.
 */
#ifndef TOOLS_MAPS_PLAN_H
#define TOOLS_MAPS_PLAN_H

#include "tools/conf/maps_conf.h"

/* A piece of a file gives way to a line. */
struct maps_change {
	struct maps_at at;	/* len 0 = behind the end of the file */
	char *line;		/* without newline; NULL = nothing */
	char *name;		/* of the mapping */
};

/**
 * struct maps_plan - all changes that one order makes
 * @changes: what was asked for is the first, others keep lines of the same session good
 * @made: file that comes into being, SIZE_MAX = none
 * @unsaid: why the line that was asked for would mean something else, NULL = it does not
 */
struct maps_plan {
	struct maps_change *changes;
	size_t nr, made;
	char *unsaid;
};

void maps_plan_init(struct maps_plan *p);
void maps_plan_free(struct maps_plan *p);

/* The valid line of that name, else the last of its faulty ones. NULL: there is none. */
struct maps_entry *maps_plan_find(struct maps *m, const char *name);
/*
 * @e in the place of @old (NULL: at the end of @file). Options that @e cannot say are @old's, whose
 * texts they stay; so are the paths when @e has none. Values of @e that [defaults] of the file
 * would change are said: they are given then. A change that changes nothing makes an empty plan.
 */
void maps_plan_save(struct maps_plan *p, const struct maps *m, struct maps_entry *e,
		    const struct maps_entry *old, size_t file);
void maps_plan_remove(struct maps_plan *p, const struct maps *m, const struct maps_entry *e);

/* @file as it will be. Allocated. */
char *maps_plan_text(const struct maps_plan *p, const struct maps *m, size_t file, size_t *len);
/* All files as they will be, checked. */
struct maps *maps_plan_after(const struct maps_plan *p, const struct maps *m);
/* Who is worse off in @after, and why, in words and allocated; NULL = nobody. */
char *maps_plan_lost(const struct maps_plan *p, struct maps *m, struct maps *after);

#endif
