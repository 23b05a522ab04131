// SPDX-License-Identifier: GPL-2.0-only
/* The doctor's checks of mirrors, beside those of each disk. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "tools/cmd/doctor.h"
#include "tools/cmd/mirror.h"

/* Do the sessions of two legs lead to one server? */
static bool mirror_together(const struct mirror *m, size_t a, size_t b)
{
	const struct state_session *one = mirror_session(m, a), *two = mirror_session(m, b);
	bool same = one && one == two;

	for (int64_t i = 0; one && two && i < one->nr_paths; i++)
		for (int64_t j = 0; j < two->nr_paths; j++)
			same |= one->paths[i].dst_addr && two->paths[j].dst_addr &&
				!strcmp(one->paths[i].dst_addr, two->paths[j].dst_addr);
	return same;
}

/* When the record was written: since then it has been as it is. Allocated. */
static char *mirror_since(const struct mirror_conf *conf)
{
	char *path __free(free) = sysfs_root("%s/%s", MIRROR_RECORDS, conf->name), when[32] = "?";
	struct stat st;
	struct tm tm;

	if (!stat(path, &st) && localtime_r(&st.st_mtime, &tm))
		strftime(when, sizeof(when), "%F %T", &tm);
	return say_dup(when);
}

static void mirror_legs(struct doctor *d, const struct mirror *m)
{
	const struct mirror_conf *c = m->conf;

	for (size_t i = 0; i < c->nr; i++) {
		const char *name = c->leg[i].name;
		struct mirror_facts f = mirror_facts(m, i);

		if (f.disk == MIRROR_OPEN && !f.tells)
			doctor_find(d, "mirror", DOCTOR_WARNING,
				    say_dup("an ibnbd server with writer_file set, and unflushed= left at its default"),
				    "mirror %s: the server of %s does not tell what it loses in a power cut: each return costs a whole copy",
				    c->name, name);
		if (f.md == MIRROR_IN_SYNC && !md_failfast(m->md, m->dev[i]->kname))
			doctor_find(d, "mirror", DOCTOR_WARNING,
				    say_fmt("ibnbd mirror replace %s %s", c->name, name),
				    "mirror %s: md has %s without --failfast, and waits for it without end",
				    c->name, name);
		for (size_t j = i + 1; j < c->nr; j++)
			if (mirror_together(m, i, j))
				doctor_find(d, "mirror", DOCTOR_WARNING,
					    say_dup("a leg of another server"),
					    "mirror %s: %s and %s are on one server", c->name, name,
					    c->leg[j].name);
	}
}

static void mirror_one(struct doctor *d, const struct mirror *m)
{
	const struct mirror_conf *c = m->conf;
	char *since __free(free) = mirror_since(c),
	     *bitmap __free(free) = m->runs ? md_attr(m->md, "bitmap/location") : NULL,
	     *lacks __free(free) = NULL;
	size_t i, whole = 0;

	for (i = 0; i < c->nr; i++) {
		bool good = mirror_whole(m, i);

		whole += good;
		if (!good && !lacks)
			lacks = say_fmt("%s is %s", c->leg[i].name,
					!m->dev[i]		     ? "not mapped" :
					m->leg[i].disk != MIRROR_OPEN ?
								       m->dev[i]->state_detail :
					m->leg[i].md == MIRROR_REBUILDING ? "being copied" :
									    "not in sync");
	}
	if (!m->runs)
		doctor_find(d, "mirror", DOCTOR_ERROR, say_fmt("ibnbd mirror assemble %s", c->name),
			    "mirror %s is not started", c->name);
	else if (whole < c->nr)
		doctor_find(d, "mirror", DOCTOR_ERROR, say_fmt("ibnbd mirror status %s", c->name),
			    "mirror %s is degraded since %s: %s", c->name, since, lacks);
	else
		doctor_find(d, "mirror", DOCTOR_OK, NULL, "mirror %s is whole", c->name);
	if (m->runs && (!bitmap || !strcmp(bitmap, "none")))
		doctor_find(d, "mirror", DOCTOR_WARNING,
			    say_fmt("mdadm --grow /dev/%s --bitmap=internal --bitmap-chunk=4M",
				    m->md),
			    "mirror %s has no bitmap: each return costs a whole copy", c->name);
	mirror_legs(d, m);
}

void doctor_mirrors(struct doctor *d)
{
	size_t refused;
	struct mirror_conf *list __free(mirror_conf_free) = mirror_conf_load(&refused, false), *c;

	if (refused)
		doctor_find(d, "mirror", DOCTOR_ERROR, say_dup("ibnbd mirror status"),
			    "%zu file%s of " MIRROR_DIR " cannot be used", refused,
			    refused == 1 ? "" : "s");
	if (list->name && !mirror_watched())
		doctor_find(d, "mirror", DOCTOR_ERROR, say_dup("systemctl start ibnbd-mirror"),
			    "ibnbd-mirror.service does not run: a leg that is lost is not let go, nor taken back");
	for (c = list; c->name; c++) {
		struct mirror m __free(mirror_free) = mirror_read(c, d->s);

		mirror_one(d, &m);
	}
}
