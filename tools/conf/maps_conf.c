// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns lines of maps.conf into mappings.
 *
 * Called by the command, by the systemd generator and by udev's helper. The last two run early and
 * have only libc. Nothing here touches the network or the driver.
 *
 * Each line is read by itself: its words become an entry, and its mistakes are noted with their
 * places. One mistake makes the entry bad, but the other words of the line are still checked. The
 * words of `[defaults]` are kept until the end of the file. Then each entry of this file that does
 * not give such an option itself gets it. A mistake in `[defaults]`, or in a line that may have
 * been meant as `[defaults]`, makes all entries of the file bad: without the `ro` of the defaults,
 * a disk would be written to. Mistakes that show only after all files were read are found by
 * maps_check.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "ibnbd/logic/text.h"
#include "tools/conf/maps_conf.h"
#include "tools/host/host.h"
#include "tools/out/say.h"
#include "tools/host/sysfs.h"

/* ---- a line ---- */

/*
 * The longest addition of systemd to our name in a unit name, see ibnbd-map@.service(8). A unit
 * name has at most 255 bytes, and is the name of a file.
 */
#define CONF_UNIT_AROUND	(sizeof("blockdev@dev-ibnbd-by\\x2dname-" ".target") - 1)
#define CONF_UNIT_MAX		255

static void conf_unit(struct maps *m, struct maps_entry *e)
{
	char *instance __free(free) = maps_unit_escape(e->map.name);
	size_t len = strlen(instance) + CONF_UNIT_AROUND;

	if (len > CONF_UNIT_MAX)
		maps_bad(
			m, e, e->name_at,
			say_fmt("the name is too long for systemd: its units would have names of %zu bytes, %d are possible",
				len, CONF_UNIT_MAX),
			say_dup("a unit's name has four bytes for each '-': a shorter name, or '_' and '.' in their place"));
}

static void conf_entry(struct maps *m, struct maps_entry *e, const struct maps_token *t, size_t nr)
{
	static const char *const fields[] = { "name", "device", "session" };
	size_t i;

	e->name_at = t[0].at;
	if (nr < 3 || strchr(t[1].text, '=') || strchr(t[2].text, '=')) {
		i = nr < 2 || strchr(t[1].text, '=') ? 1 : 2;
		maps_bad(
			m, e, i < nr ? t[i].at : t[nr - 1].at,
			say_fmt("the line has no %s", fields[i]),
			say_dup("a line is: name device session [option]..., for example: vol1 vol/1 store1 path=10.0.1.7"));
		return;
	}
	e->device_at = t[1].at;
	e->session_at = t[2].at;
	if (t[0].text[0] == '-')
		maps_bad(m, e, t[0].at, say_dup("a name does not begin with '-'"), NULL);
	maps_take_word(m, e, "name", &t[0]);
	conf_unit(m, e);
	memcpy(e->name, e->map.name, sizeof(e->name));
	maps_take_word(m, e, "device_path", &t[1]);
	e->made_session = !strcmp(t[2].text, "-");
	if (!e->made_session)
		maps_take_word(m, e, "sessname", &t[2]);
	for (i = 3; i < nr; i++)
		maps_take_option(m, e, &t[i], false);
}

#define CONF_MACHINE_ID	"/etc/machine-id"

/*
 * Several hosts may have the same name, above all localhost, but each has its own machine id. The
 * id must stay secret (machine-id(5)), so only 32 bits of its hash (FNV-1a) go into the name.
 * Returns why there is no id, allocated, and then @out is "".
 */
static char *conf_machine(char *out, size_t size)
{
	char *path __free(free) = sysfs_root(CONF_MACHINE_ID), *id __free(free) = sysfs_text(path),
	     *why = NULL;
	uint64_t hash = 0xcbf29ce484222325;
	const char *p;

	*out = 0;
	if (!id)
		why = say_fmt("%s: %s", path, errno == EILSEQ ? "it is no text, but has NUL bytes" :
								strerror(errno));
	else if (strlen(id) < 32 || id[strspn(id, "0123456789abcdefABCDEF-")] ||
		 !id[strspn(id, "0-")])		/* "uninitialized", for example */
		why = say_fmt("%s: it is no id of a machine, of 32 hexadecimal digits", path);
	for (p = why ? "" : id; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
	if (!why)
		snprintf(out, size, "-%08x", (unsigned int)(hash ^ hash >> 32));
	return why;
}

static void conf_session_name(const char *host, const char *machine, const char *server, char *out,
			      size_t size)
{
	snprintf(out, size, "%s%s@%s", *host ? host : "host", machine, server);
	for (; *out; out++)
		if (strchr("./:%[]", *out))
			*out = '-';
}

/*
 * Is @name made for @server by a host of any name and id: HOST-MACHINE@SERVER? Both may change
 * while a session lives: by DHCP, cloud-init, or between initramfs and system. The sessions that
 * are looked at are this host's.
 */
static bool conf_is_made(const char *name, const char *server)
{
	const char *at = strrchr(name, '@');

	return at && !strcmp(at + 1, server) && at - name >= 10 && at[-9] == '-' &&
	       strspn(at - 8, "0123456789abcdef") == 8;
}

char *maps_kname(const char *session, const char *device_path)
{
	char link[IBNBD_LINKNAME_MAX], *path __free(free) = NULL;

	ibnbd_linkname_dev(device_path, session, link, sizeof(link));
	path = sysfs_path("class/ibnbd-client/ctl/devices/%s", link);
	return sysfs_link(path);
}

/*
 * The session that @best stands for: one that has the device, rather than one of a name that comes
 * first in @names, rather than another one that was made for the server. Earlier versions of this
 * command made other names. NULL: none is there.
 */
static const char *conf_live(char *const *sessions, char names[][IBNBD_NAME_LEN], size_t nr,
			     const char *server, const char *device_path)
{
	const char *best = NULL;
	size_t i, j, rank, least = SIZE_MAX;

	for (i = 0; sessions[i]; i++) {
		char *kname __free(free) = maps_kname(sessions[i], device_path);

		for (j = 0; j < nr && strcmp(sessions[i], names[j]); j++)
			;
		if (j == nr && !conf_is_made(sessions[i], server))
			continue;
		rank = kname ? j : j + nr + 1;
		if (rank < least) {
			least = rank;
			best = sessions[i];
		}
	}
	return best;
}

char *maps_make_session(struct ibnbd_map *map, const char *host)
{
	char self[65] = "", machine[16], names[3][IBNBD_NAME_LEN], dst[IBTRS_PATH_STR_MAX],
	     *dir __free(free) = sysfs_path("class/ibtrs-client"),
	     **sessions __free(sysfs_list_free) = sysfs_list(dir, NULL), *why __free(free) = NULL;
	const char *p, *live;

	if (map->nr_paths)
		ibtrs_addr_format(&map->path[0].dst, dst, sizeof(dst));
	else
		snprintf(dst, sizeof(dst), "%s", host);
	gethostname(self, sizeof(self) - 1);
	p = dst + host_cut(dst);
	p = *p ? p + 1 : dst;
	if (!strncmp(p, "ip:", 3))
		p += 3;
	why = conf_machine(machine, sizeof(machine));
	conf_session_name(self, machine, p, names[0], sizeof(names[0]));
	conf_session_name(self, "", p, names[1], sizeof(names[1]));
	self[strcspn(self, "./")] = 0;
	conf_session_name(self, "", p, names[2], sizeof(names[2]));
	live = conf_live(sessions, names, 3, strrchr(names[1], '@') + 1, map->device_path);
	snprintf(map->sessname, sizeof(map->sessname), "%s", live ? live : names[0]);
	if (why && !live)
		return say_fmt("\"-\" makes no session that is this host's alone: %s", why);
	map->given |= 1u << IBNBD_OPT_sessname;
	return NULL;
}

static void conf_session(struct maps *m, struct maps_entry *e)
{
	char *why;

	if (!e->made_session || e->bad)
		return;
	if (!e->map.nr_paths && !e->nr_hosts) {
		maps_bad(m, e, e->session_at,
			 say_dup("\"-\" makes a session of the first path, but there is no path="),
			 NULL);
		return;
	}
	why = maps_make_session(&e->map, e->host[0]);
	if (why)
		maps_bad(m, e, e->session_at, why, say_dup(MAPS_MACHINE_HINT));
}

static void conf_defaults(struct maps_entry *e, const struct maps_entry *d)
{
	maps_take_values(&e->map, &d->map, d->map.given & ~e->map.given);
	for (int j = 0; j < MAPS_NR_OPTIONS; j++) {
		if (!maps_given(d, j) || maps_given(e, j) || maps_opposed(e, j))
			continue;
		e->given |= 1u << j;
		e->number[j] = d->number[j];
		e->text[j] = d->text[j] ? say_dup(d->text[j]) : NULL;
	}
}

#define CONF_DEFAULTS		"[defaults]"
#define CONF_DEFAULTS_NEAR	2	/* letters that are wrong */

/* Is @s the word of CONF_DEFAULTS, apart from case, brackets and typing errors? */
static bool conf_like_defaults(const char *s)
{
	char word[16] = "";
	size_t n = 0;

	for (; *s && n < sizeof(word) - 1; s++)
		if ((*s | 0x20) >= 'a' && (*s | 0x20) <= 'z')
			word[n++] = (char)(*s | 0x20);
	return say_distance(word, "defaults") <= CONF_DEFAULTS_NEAR;
}

/* Is the line no entry, and may it have been meant as [defaults]? */
static bool conf_header(const struct maps_words *w)
{
	const char *s = w->t[0].text;
	size_t len = strlen(s), i;
	bool entry = w->nr > 2;

	if (*s == '[' || (len && s[len - 1] == ']'))
		return true;
	for (i = 1; i < 3 && entry; i++)
		entry = !strchr(w->t[i].text, '=') && !maps_is_option(w->t[i].text);
	return conf_like_defaults(s) && !(entry && maps_made_of(s, "._-"));
}

/*
 * Does the line hold what may have been meant as [defaults]? @at is the place. The caller handles a
 * [defaults] line that can be read. In a line that cannot be read [defaults] may stand anywhere; in
 * a line that is continued by mistake it stands between other words.
 */
static bool conf_no_defaults(const struct maps *m, const struct maps_words *w, struct maps_at line,
			     struct maps_at *at)
{
	static const char begin[] = "[default";
	const char *text = m->files[line.file].text;
	size_t i, n = sizeof(begin) - 1;

	*at = line;
	if (w->nr && conf_header(w))
		return true;
	for (i = 0; w->bad && i + n <= line.len; i++)
		if (!strncasecmp(text + line.off + i, begin, n))
			return true;
	for (i = 1; i < w->nr; i++) {
		*at = w->t[i].at;
		if (w->t[i].plain && !strcmp(w->t[i].text, CONF_DEFAULTS))
			return true;
	}
	return false;
}

static void conf_left_out(struct maps *m, struct maps_entry *e)
{
	const struct maps_file *f = &m->files[e->line.file];
	size_t line, col;

	if (e->bad || !f->no_defaults)
		return;
	maps_place(m, f->defaults_at, &line, &col);
	maps_bad(m, e, e->name_at,
		 say_fmt("%s is left out: line %zu would give options to it, and has a mistake",
			 e->name, line),
		 say_dup("fix that line, then: ibnbd maps check"));
}

static void conf_free_entry(struct maps_entry *e)
{
	for (size_t i = 0; i < MAPS_NR_OPTIONS; i++)
		free(e->text[i]);
	for (size_t i = 0; i < e->nr_hosts; i++)
		free(e->host[i]);
	for (size_t i = 0; i < e->nr_own; i++)
		free(e->own[i]);
	free(e->own);
}

/*
 * 16 or 32 by the byte order mark; 0: the file may be UTF-8. UTF-32 is checked first: its mark
 * begins with that of UTF-16.
 */
static int conf_utf_bits(const struct maps_file *f)
{
	if (f->len >= 4 &&
	    (!memcmp(f->text, "\xff\xfe\0\0", 4) || !memcmp(f->text, "\0\0\xfe\xff", 4)))
		return 32;
	return f->len >= 2 && (!memcmp(f->text, "\xff\xfe", 2) || !memcmp(f->text, "\xfe\xff", 2)) ?
		       16 :
		       0;
}

/* Are there carriage returns between lines, and no newline at all? */
static bool conf_old_ends(const struct maps_file *f)
{
	const char *cr = memchr(f->text, '\r', f->len);

	return cr && cr < f->text + f->len - 1 && !memchr(f->text, '\n', f->len);
}

/* Check the file as a whole. Returns the offset of its first line. */
static size_t conf_text(struct maps *m, size_t file)
{
	const struct maps_file *f = &m->files[file];
	const char *cr = f->len ? memmem(f->text, f->len, "\r\n", 2) : NULL;
	int bits = conf_utf_bits(f);

	if (bits) {
		maps_refuse(m, file, say_fmt("it is UTF-%d, and UTF-8 is read", bits),
			    say_fmt("iconv -f UTF-%d -t UTF-8 %s > NEW", bits, f->path));
		return f->len;
	}
	if (conf_old_ends(f)) {
		maps_refuse(
			m, file,
			say_dup("its lines end with a carriage return alone, as on old systems; all of it is one line"),
			say_fmt("tr '\\r' '\\n' < %s > NEW", f->path));
		return f->len;
	}
	if (cr)
		maps_warn(m, (struct maps_at){ file, (size_t)(cr - f->text), 1 },
			  say_dup("the file has lines with a carriage return"),
			  say_dup("it was written on another system; sed -i 's/\\r$//' fixes it"));
	if (f->len < 3 || memcmp(f->text, "\xef\xbb\xbf", 3))
		return 0;
	maps_warn(
		m, (struct maps_at){ file, 0, 3 },
		say_dup("the file begins with a byte order mark"),
		say_dup("it was written on another system; sed -i '1s/^\\xef\\xbb\\xbf//' fixes it"));
	return 3;
}

size_t maps_add_file(struct maps *m, const char *path, const char *text, size_t len)
{
	size_t file = m->nr_files;

	m->files = say_grow(m->files, (m->nr_files + 1) * sizeof(*m->files));
	m->files[m->nr_files++] =
		(struct maps_file){ .path = say_dup(path), .text = say_alloc(len + 1), .len = len };
	if (len)
		memcpy(m->files[file].text, text, len);
	m->files[file].begin = conf_text(m, file);
	return file;
}

static void conf_add(struct maps *m, const struct maps_entry *e)
{
	if (m->nr == m->room) {
		m->room = m->room ? 2 * m->room : 16;
		m->entries = say_grow(m->entries, m->room * sizeof(*m->entries));
	}
	m->entries[m->nr++] = *e;
}

void maps_parse(struct maps *m, const char *path, const char *text, size_t len)
{
	size_t file = maps_add_file(m, path, text, len), off, next, first = m->nr, i;
	struct maps_entry defaults = { 0 };
	struct maps_words w;
	struct maps_at at;
	bool have = false, full = false, mistaken;

	ibnbd_mapopt_init(&defaults.map);
	for (off = m->files[file].begin; off < len; off = next) {
		struct maps_entry e = { .line = { file, off, 0 } };

		next = maps_lex(m, file, off, &w);
		e.line.len = next - off;
		e.comment = w.comment;
		ibnbd_mapopt_init(&e.map);
		mistaken = conf_no_defaults(m, &w, e.line, &at);
		if (!w.nr || w.bad) {
			;
		} else if (!strcmp(w.t[0].text, CONF_DEFAULTS)) {
			if (have)
				maps_error(m, w.t[0].at,
					   say_dup(CONF_DEFAULTS " is twice in this file"),
					   say_dup("one line of it says everything"));
			for (i = 1; i < w.nr && !have; i++)
				maps_take_option(m, &defaults, &w.t[i], true);
			mistaken = have || defaults.bad;
			have = true;
		} else if (w.t[0].text[0] == '[') {
			maps_error(m, w.t[0].at, say_fmt("\"%s\" is no section", w.t[0].text),
				   say_dup("the only one is " CONF_DEFAULTS));
		} else if (m->nr == MAPS_MAX) {
			if (!full)
				maps_error(m, w.t[0].at, say_fmt("more than %d mappings", MAPS_MAX),
					   NULL);
			full = true;
		} else {
			conf_entry(m, &e, w.t, w.nr);
			conf_add(m, &e);
		}
		maps_words_free(&w);
		if (mistaken && !m->files[file].no_defaults) {
			m->files[file].no_defaults = true;
			m->files[file].defaults_at = at;
		}
	}
	for (i = first; i < m->nr; i++) {
		struct ibnbd_mapopt_err err;
		struct maps_entry *e = &m->entries[i];

		conf_defaults(e, &defaults);
		conf_left_out(m, e);
		conf_session(m, e);
		if (!e->bad && ibnbd_mapopt_finish(&e->map, &err))
			maps_bad(m, e, e->name_at, say_dup(err.msg), NULL);
	}
	conf_free_entry(&defaults);
}

void maps_drop(struct maps *m, size_t first)
{
	while (m->nr > first)
		conf_free_entry(&m->entries[--m->nr]);
}

void maps_free(struct maps *m)
{
	if (!m)
		return;
	maps_drop(m, 0);
	for (size_t i = 0; i < m->nr_files; i++) {
		free(m->files[i].path);
		free(m->files[i].text);
	}
	for (size_t i = 0; i < m->nr_diags; i++) {
		free(m->diags[i].msg);
		free(m->diags[i].hint);
	}
	free(m->entries);
	free(m->files);
	free(m->diags);
	free(m);
}
