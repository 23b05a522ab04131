// SPDX-License-Identifier: GPL-2.0-only
/*
 * mirror create: two or three disks of different servers become a mirror; and mirror replace with a
 * new disk in place of a leg.
 *
 * A leg is the name of a saved mapping, or what `ibnbd map` takes, as one word:
 * "DEVICE SESSION PATH.. OPTION=.." becomes the mapping NAME-a, NAME-b or NAME-c. Each is mapped
 * with hold=-1 and group=NAME, looked at, saved, and given to mdadm. What was mapped for it is
 * unmapped again if the mirror cannot be made.
 */
#include <blkid.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/cmd/mirror.h"
#include "tools/conf/maps_store.h"
#include "tools/host/mapping.h"

struct create_leg {
	struct maps *m;			/* that has @e */
	struct maps_entry e;		/* as it will be saved; owns nothing */
	const struct state_dev *dev;
	bool made;			/* mapped by us */
};

struct create {
	struct cmd_args *a;
	const char *name;
	struct create_leg leg[MIRROR_LEGS];
	size_t nr;
	int64_t wait;
	struct state *s;
};

/* ---- what a leg is ---- */

/* Words behind the session that are no options are paths, as on the command line of `map`. */
static char *create_line(const char *name, char letter, const char *said)
{
	char *copy __free(free) = say_dup(said), *line = say_fmt("%s-%c", name, letter), *word,
	     *save = NULL;
	size_t nr = 0;

	for (word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
		bool path = nr++ >= 2 && !strchr(word, '=') && !maps_is_option(word);

		say_append(&line, " %s%s", path ? "path=" : "", word);
	}
	say_append(&line, "\n");
	return line;
}

static int create_parse(struct create *c, size_t i, char letter, const char *said)
{
	struct create_leg *leg = &c->leg[i];
	const struct maps_entry *e = NULL;
	char *line __free(free) = NULL;

	if (said[strcspn(said, " \t")]) {
		leg->m = say_alloc(sizeof(*leg->m));
		line = create_line(c->name, letter, said);
		maps_parse(leg->m, said, line, strlen(line));
		maps_check(leg->m);
		for (size_t n = 0; n < leg->m->nr_diags; n++)
			if (leg->m->diags[n].level == MAPS_ERROR) {
				say_error(SAY_USAGE, "leg \"%s\": %s", said, leg->m->diags[n].msg);
				if (leg->m->diags[n].hint)
					say_hint("%s", leg->m->diags[n].hint);
			}
		e = leg->m->nr && !leg->m->entries[0].bad ? &leg->m->entries[0] : NULL;
	} else {
		leg->m = maps_load(VALUE(c->a, file));
		e = maps_find(leg->m, said);
		if (!e) {
			say_error(SAY_NOTHING, "leg %s: maps.conf has no usable line of that name",
				  said);
			say_hint("or write the mapping as one word: \"DEVICE SESSION PATH...\"");
		}
	}
	if (!e)
		return line ? SAY_USAGE : SAY_NOTHING;
	leg->e = *e;
	leg->e.map.hold = IBNBD_MAP_FOREVER;
	snprintf(leg->e.map.group, sizeof(leg->e.map.group), "%s", c->name);
	leg->e.map.given |= 1u << IBNBD_OPT_hold | 1u << IBNBD_OPT_group;
	return SAY_DONE;
}

/* ---- two servers ---- */

/* An address, or a name of a host, that both have. Allocated, or NULL. */
static char *create_same_address(const struct maps_entry *a, const struct maps_entry *b)
{
	char text[IBTRS_ADDR_STR_MAX];

	for (size_t i = 0; i < a->map.nr_paths; i++)
		for (size_t j = 0; j < b->map.nr_paths; j++)
			if (ibtrs_addr_equal(&a->map.path[i].dst, &b->map.path[j].dst)) {
				ibtrs_addr_format(&a->map.path[i].dst, text, sizeof(text));
				return say_dup(text);
			}
	for (size_t i = 0; i < a->nr_hosts; i++)
		for (size_t j = 0; j < b->nr_hosts; j++)
			if (!strcmp(a->host[i], b->host[j]))
				return say_dup(a->host[i]);
	return NULL;
}

static int create_refuse(const struct create *c, const char *why, const char *more)
{
	if (ARG(c->a, force)) {
		say_warn("mirror %s: %s%s", c->name, why, more);
		return SAY_DONE;
	}
	say_error(SAY_USAGE, "mirror %s: %s%s", c->name, why, more);
	return say_hint("--force makes it all the same");
}

static int create_apart(const struct create *c)
{
	int rc = SAY_DONE;

	for (size_t i = 0; i < c->nr; i++)
		for (size_t j = i + 1; j < c->nr && !rc; j++) {
			const struct maps_entry *a = &c->leg[i].e, *b = &c->leg[j].e;
			char *same __free(free) = create_same_address(a, b);

			if (!strcmp(a->name, b->name) ||
			    (!strcmp(a->map.sessname, b->map.sessname) &&
			     !strcmp(a->map.device_path, b->map.device_path)))
				rc = say_error(SAY_USAGE, "mirror %s: two legs are the same disk",
					       c->name);
			else if (!strcmp(a->map.sessname, b->map.sessname))
				rc = create_refuse(c, "two legs are on one server, that of session ",
						   a->map.sessname);
			else if (same)
				rc = create_refuse(c, "two legs are on one server, ", same);
		}
	return rc;
}

/* ---- mapping ---- */

static bool create_fits(const struct state_dev *d, const struct create_leg *leg)
{
	return d->group && !strcmp(d->group, leg->e.map.group) && d->name &&
	       !strcmp(d->name, leg->e.name) && d->hold == IBNBD_MAP_FOREVER;
}

static int create_map(struct create *c, struct create_leg *leg)
{
	struct state *s __free(state_free) = state_read();
	struct state_dev *d = state_dev_of(s, leg->e.map.sessname, leg->e.map.device_path);
	const struct ibnbd_map *map = &leg->e.map;
	char *kname __free(free) = NULL, *why __free(free) = NULL;
	int rc = SAY_DONE, err;

	if (d && !create_fits(d, leg)) {
		rc = mapping_unmap(d, false, MAPPING_WAIT);
		d = NULL;
	}
	if (!rc && !d) {
		rc = mapping_map(map, leg->e.host, leg->e.nr_hosts, &kname, &err, &why);
		if (rc)
			say_error(rc, "mirror %s: cannot map %s of session %s: %s", c->name,
				  map->device_path, map->sessname, why);
		leg->made = kname;
	}
	return rc;
}

/* Back to what was there. */
static void create_undo(struct create *c)
{
	for (size_t i = 0; i < c->nr; i++) {
		struct create_leg *leg = &c->leg[i];
		struct state_dev *d;

		if (!leg->made)
			continue;
		state_free(c->s);
		c->s = state_read();
		d = state_dev_of(c->s, leg->e.map.sessname, leg->e.map.device_path);
		if (d)
			mapping_unmap(d, false, MAPPING_WAIT);
	}
}

/* ---- the disks ---- */

/* Describes the content of the disk. Allocated; NULL: it is empty. */
static char *create_content(const struct state_dev *d)
{
	char *path __free(free) = sysfs_root("%s", d->path), *what = NULL;
	blkid_probe probe = blkid_new_probe_from_filename(path);
	const char *type;

	if (!probe)
		return say_dup("something that cannot be read");
	blkid_probe_enable_partitions(probe, 1);
	if (blkid_do_safeprobe(probe) < 0)
		what = say_dup("something that cannot be told");
	else if (!blkid_probe_lookup_value(probe, "TYPE", &type, NULL) ||
		 !blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL))
		what = say_dup(type);
	blkid_free_probe(probe);
	return what;
}

static int create_look(struct create *c, size_t i)
{
	struct create_leg *leg = &c->leg[i];
	struct mirror_conf conf = { .nr = 1, .leg = { { leg->e.name, (char *)"", false } } };
	struct mirror one = { .conf = &conf };
	char *what __free(free) = NULL;
	int rc = SAY_DONE;

	leg->dev = state_dev_of(c->s, leg->e.map.sessname, leg->e.map.device_path);
	if (!leg->dev)
		return SAY_DONE;	/* a dry run */
	one.dev[0] = leg->dev;
	if (leg->dev->state_detail && strcmp(leg->dev->state_detail, "open"))
		return say_error(SAY_UNREACHABLE, "mirror %s: %s is %s", c->name, leg->e.name,
				 leg->dev->state_detail);
	if (!mirror_facts(&one, 0).tells)
		rc = create_refuse(c, "its server does not tell what it loses in a power cut, or which disk this is: each return costs a whole copy: ",
				   leg->e.name);
	if (!rc && c->leg[0].dev && leg->dev->size != c->leg[0].dev->size)
		rc = create_refuse(c, "the legs have different sizes: ", leg->e.name);
	what = rc ? NULL : create_content(leg->dev);
	if (what) {
		char *more __free(free) = say_fmt("%s on %s", what, leg->e.name);

		rc = create_refuse(c, "there is content, which would be lost: ", more);
	}
	return rc;
}

/* ---- the mirror ---- */

static char *create_uuid(void)
{
	uint32_t r[4];

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		exit(say_error(SAY_FAILED, "no random number: %s", strerror(errno)));
	return say_fmt("%08x:%08x:%08x:%08x", r[0], r[1], r[2], r[3]);
}

static int create_array(const struct create *c, const struct mirror_conf *conf)
{
	char *path __free(free) = say_fmt("/dev/md/%s", c->name),
	     *name __free(free) = say_fmt("--name=%s", c->name),
	     *uuid __free(free) = say_fmt("--uuid=%s", conf->uuid),
	     *nr __free(free) = say_fmt("--raid-devices=%zu", c->nr), *disk[MIRROR_LEGS] = { NULL },
	     *said __free(free) = NULL;
	const char *words[16 + MIRROR_LEGS] = {
		"mdadm", "--create", path, "--run", "--level=1", "--metadata=1.2", nr, "--homehost=any",
		name, uuid, "--bitmap=internal", "--bitmap-chunk=4M", "--failfast"
	};
	size_t n = 13, i;
	int rc;

	if (ARG(c->a, assume_clean))
		words[n++] = "--assume-clean";
	for (i = 0; i < c->nr; i++) {
		disk[i] = c->leg[i].dev ? say_dup(c->leg[i].dev->path) :
					  say_fmt("/dev/ibnbd/by-name/%s", c->leg[i].e.name);
		words[n++] = disk[i];
	}
	rc = md_run(&said, words);
	if (rc)
		rc = say_error(SAY_FAILED, "mirror %s: cannot make the array: %s", c->name,
			       said ? said : "?");
	for (i = 0; i < c->nr; i++)
		free(disk[i]);
	return rc;
}

static void create_service(void)
{
	if (sysfs_dry_run || sysfs_redirected() || access("/run/systemd/system", F_OK))
		return;
	if (SYSFS_RUN("systemctl", "start", "--no-block", "ibnbd-mirror.service")) {
		say_warn("ibnbd-mirror.service does not start: the mirror does not react when a leg is lost");
		say_hint("systemctl status ibnbd-mirror");
	}
}

static int create_finish(struct create *c)
{
	struct mirror_conf conf = { .name = (char *)c->name, .wait = c->wait, .nr = c->nr };
	int rc = SAY_DONE;

	for (size_t i = 0; i < c->nr; i++) {
		const struct state_dev *d = c->leg[i].dev;

		conf.leg[i].name = (char *)c->leg[i].e.name;
		conf.leg[i].identity = d && d->identity ? d->identity : (char *)"";
		if (!rc)
			rc = maps_store_save(&c->leg[i].e, VALUE(c->a, file), false,
					     !ARG(c->a, no_reload) && i + 1 == c->nr);
	}
	if (rc)
		return rc;
	conf.uuid = create_uuid();
	rc = create_array(c, &conf);
	for (size_t i = 0; !rc && i < c->nr; i++)
		c->leg[i].made = false;		/* from here on they are the array's */
	rc = rc ? rc : mirror_record_write(&conf, (1u << c->nr) - 1);
	rc = rc ? rc : mirror_conf_write(&conf);
	if (!rc)
		create_service();
	if (!rc && say_level >= 0 && !sysfs_dry_run)
		printf("/dev/md/%s\n", c->name);
	free(conf.uuid);
	return rc;
}

static int create_begin(struct create *c)
{
	const char *wrong = mirror_wrong_name(c->name);
	struct mirror_conf *list __free(mirror_conf_free) = NULL;
	size_t refused, i;
	int rc = cmd_wait(c->a, true, &c->wait);

	if (wrong)
		return say_error(SAY_USAGE, "\"%s\" is no name of a mirror: %s", c->name, wrong);
	list = mirror_conf_load(&refused, true);
	if (!rc && mirror_conf_find(list, c->name))
		rc = say_error(SAY_ALREADY, "there is a mirror %s already", c->name);
	for (i = 0; !rc && i < c->nr; i++)
		rc = create_parse(c, i, 'a' + (char)i, c->a->words[i + 1]);
	return rc ? rc : create_apart(c);
}

int cmd_mirror_create_run(struct cmd_args *a)
{
	struct create c = { .a = a, .name = a->words[0], .nr = a->nr_words - 1,
			    .wait = MIRROR_WAIT };
	int rc = create_begin(&c), lock __free(say_close) = -1;

	if (!rc && !sysfs_dry_run)
		lock = mirror_lock(c.name, 0);
	if (!rc && lock < 0 && !sysfs_dry_run)
		rc = mirror_not_locked(c.name);
	rc = rc ? rc : mapping_driver(!ARG(a, no_modprobe));
	for (size_t i = 0; !rc && i < c.nr; i++)
		rc = create_map(&c, &c.leg[i]);
	c.s = state_read();
	for (size_t i = 0; !rc && i < c.nr; i++)
		rc = create_look(&c, i);
	rc = rc ? rc : create_finish(&c);
	if (rc)
		create_undo(&c);
	for (size_t i = 0; i < c.nr; i++)
		maps_free(c.leg[i].m);
	state_free(c.s);
	return rc;
}

/* ---- a new disk in place of a leg ---- */

/* The first letter that no mapping has which is saved: of a leg, or of one that was a leg. */
static char create_letter(const struct mirror_conf *conf)
{
	struct maps *m __free(maps_free) = maps_load(NULL);
	bool taken = true;
	char letter = 'a';

	while (taken && letter < 'z') {
		char *name __free(free) = say_fmt("%s-%c", conf->name, letter);

		taken = maps_find(m, name);
		letter += taken;
	}
	return letter;
}

/* Is it on the server of another leg, or too small? */
static int create_beside(const struct create *c, const struct mirror *m, size_t leg)
{
	const struct state_dev *new = c->leg[0].dev;
	int rc = SAY_DONE;

	for (size_t i = 0; new && !rc && i < m->conf->nr; i++) {
		const struct state_dev *d = m->dev[i];

		if (i == leg || !d)
			continue;
		if (new->session && d->session && !strcmp(new->session, d->session))
			rc = create_refuse(c, "two legs are on one server, that of session ",
					   new->session);
		else if (new->size < d->size)
			rc = say_error(SAY_USAGE, "mirror %s: %s is smaller than %s", c->name,
				       c->leg[0].e.name, m->conf->leg[i].name);
	}
	return rc;
}

int mirror_exchange(struct cmd_args *a, struct mirror *m, struct mirror_conf *conf, size_t leg)
{
	struct create c = { .a = a, .name = conf->name, .nr = 1 };
	struct create_leg *new = &c.leg[0];
	char *old __free(free) = say_dup(conf->leg[leg].name);
	unsigned int healthy = 0;
	int rc = create_parse(&c, 0, create_letter(conf), a->words[2]);

	rc = rc ? rc : create_map(&c, new);
	c.s = state_read();
	rc = rc ? rc : create_look(&c, 0);
	rc = rc ? rc : create_beside(&c, m, leg);
	rc = rc ? rc : maps_store_save(&new->e, NULL, false, true);
	rc = rc ? rc : mirror_take_out(m, leg);
	if (rc) {
		create_undo(&c);
	} else {
		free(conf->leg[leg].name);
		free(conf->leg[leg].identity);
		conf->leg[leg].name = say_dup(new->e.name);
		conf->leg[leg].identity = say_dup(new->dev && new->dev->identity ?
							  new->dev->identity : "");
		for (size_t i = 0; i < conf->nr; i++)
			healthy |= (unsigned int)(i != leg && conf->leg[i].recorded) << i;
		rc = mirror_record_write(conf, healthy);
		rc = rc ? rc : mirror_conf_write(conf);
	}
	if (!rc && say_level >= 0 && strcmp(old, new->e.name))
		say_hint("ibnbd unmap --forget %s, which is no leg any more", old);
	maps_free(new->m);
	state_free(c.s);
	return rc;
}
