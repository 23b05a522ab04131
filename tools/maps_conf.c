// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lines of maps.conf to mappings.
 *
 * Called by the command, by the systemd generator and by udev's helper; those two run early and have libc only. Nothing here touches the
 * network or the driver.
 *
 * Each line stands for itself: its words become an entry, its mistakes are noted with their places, and one mistake makes the entry bad but lets
 * the rest of its words be looked at too. `[defaults]` are words kept until the file has ended and then given to those of its entries that
 * do not say it themselves. What can only be seen with all files read is maps_check.c's.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/maps_conf.h"
#include "tools/say.h"

/* ---- a line ---- */

static void conf_entry(struct maps *m, struct maps_entry *e, const struct maps_token *t, size_t nr)
{
	static const char *const fields[] = { "name", "device", "session" };
	size_t i;

	e->name_at = t[0].at;
	if (nr < 3 || strchr(t[1].text, '=') || strchr(t[2].text, '=')) {
		i = nr < 2 || strchr(t[1].text, '=') ? 1 : 2;
		maps_bad(m, e, i < nr ? t[i].at : t[nr - 1].at, say_fmt("the line has no %s", fields[i]),
			 say_dup("a line is: name device session [option]..., for example: vol1 vol/1 store1 path=10.0.1.7"));
		return;
	}
	e->device_at = t[1].at;
	e->session_at = t[2].at;
	if (t[0].text[0] == '-')
		maps_bad(m, e, t[0].at, say_dup("a name does not begin with '-'"), NULL);
	maps_take_word(m, e, "name", &t[0]);
	memcpy(e->name, e->map.name, sizeof(e->name));
	maps_take_word(m, e, "device_path", &t[1]);
	e->made_session = !strcmp(t[2].text, "-");
	if (!e->made_session)
		maps_take_word(m, e, "sessname", &t[2]);
	for (i = 3; i < nr; i++)
		maps_take_option(m, e, &t[i], false);
}

void maps_make_session(const char *server, char *out, size_t size)
{
	char host[65] = "";
	const char *p;

	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, "./")] = 0;
	p = strrchr(server, '@') ? strrchr(server, '@') + 1 : strrchr(server, ',') ? strrchr(server, ',') + 1 : server;
	if (!strncmp(p, "ip:", 3))
		p += 3;
	snprintf(out, size, "%s@%s", *host ? host : "host", p);
	for (; *out; out++)
		if (strchr("./:%[]", *out))
			*out = '-';
}

static void conf_session(struct maps *m, struct maps_entry *e)
{
	char dst[IBTRS_PATH_STR_MAX];

	if (!e->made_session || e->bad)
		return;
	if (e->map.nr_paths) {
		ibtrs_addr_format(&e->map.path[0].dst, dst, sizeof(dst));
	} else if (e->nr_hosts) {
		snprintf(dst, sizeof(dst), "%s", e->host[0]);
	} else {
		maps_bad(m, e, e->session_at, say_dup("\"-\" makes a session of the first path, but there is no path="), NULL);
		return;
	}
	maps_make_session(dst, e->map.sessname, sizeof(e->map.sessname));
	e->map.given |= 1u << IBNBD_OPT_sessname;
}

static void conf_defaults(struct maps_entry *e, const struct maps_entry *d)
{
	const struct ibnbd_mapopt *o;
	size_t nr, i;
	int j;

	o = ibnbd_mapopt_table(&nr);
	for (i = 0; i < nr; i++) {
		if (!ibnbd_map_given(&d->map, i) || ibnbd_map_given(&e->map, i))
			continue;
		*(int *)((char *)&e->map + o[i].offset) = *(const int *)((const char *)&d->map + o[i].offset);
		e->map.given |= 1u << i;
	}
	for (j = 0; j < MAPS_NR_OPTIONS; j++) {
		if (!maps_given(d, j) || maps_given(e, j) || (j == MAPS_wait && maps_given(e, MAPS_nowait)) ||
		    (j == MAPS_nowait && maps_given(e, MAPS_wait)))
			continue;
		e->given |= 1u << j;
		e->number[j] = d->number[j];
		e->text[j] = d->text[j] ? say_dup(d->text[j]) : NULL;
	}
}

static void conf_free_entry(struct maps_entry *e)
{
	size_t i;

	for (i = 0; i < MAPS_NR_OPTIONS; i++)
		free(e->text[i]);
	for (i = 0; i < e->nr_hosts; i++)
		free(e->host[i]);
	for (i = 0; i < e->nr_own; i++)
		free(e->own[i]);
	free(e->own);
}

static void conf_cr(struct maps *m, size_t file)
{
	const struct maps_file *f = &m->files[file];
	const char *cr = memchr(f->text, '\r', f->len);

	if (cr && cr + 1 < f->text + f->len && cr[1] == '\n')
		maps_warn(m, (struct maps_at){ file, (size_t)(cr - f->text), 1 }, say_dup("the file has lines with a carriage return"),
			  say_dup("it was written on another system; sed -i 's/\\r$//' mends it"));
}

void maps_parse(struct maps *m, const char *path, const char *text, size_t len)
{
	size_t file = m->nr_files, off = 0, next, nr, first = m->nr, i;
	struct maps_entry defaults = { 0 };
	bool bad, have = false;
	struct maps_token *t;

	m->files = say_grow(m->files, (m->nr_files + 1) * sizeof(*m->files));
	m->files[m->nr_files++] = (struct maps_file){ say_dup(path), say_alloc(len + 1), len };
	if (len)
		memcpy(m->files[file].text, text, len);
	ibnbd_mapopt_init(&defaults.map);
	conf_cr(m, file);
	for (; off < len; off = next) {
		struct maps_entry e = { .line = { file, off, 0 } };

		next = maps_lex(m, file, off, &t, &nr, &bad);
		e.line.len = next - off;
		ibnbd_mapopt_init(&e.map);
		if (nr && !bad && !strcmp(t[0].text, "[defaults]")) {
			if (have)
				maps_error(m, t[0].at, say_dup("[defaults] stands in this file twice"), NULL);
			for (i = 1; i < nr && !have; i++)
				maps_take_option(m, &defaults, &t[i], true);
			have = true;
		} else if (nr && !bad && t[0].text[0] == '[') {
			maps_error(m, t[0].at, say_fmt("\"%s\" is no section", t[0].text), say_dup("the only one is [defaults]"));
		} else if (nr && !bad && m->nr == MAPS_MAX) {
			maps_error(m, t[0].at, say_fmt("more than %d mappings", MAPS_MAX), NULL);
			next = len;
		} else if (nr && !bad) {
			conf_entry(m, &e, t, nr);
			if (m->nr == m->room) {
				m->room = m->room ? 2 * m->room : 16;
				m->entries = say_grow(m->entries, m->room * sizeof(*m->entries));
			}
			m->entries[m->nr++] = e;
		}
		maps_tokens_free(t, nr);
	}
	for (i = first; i < m->nr; i++) {
		struct ibnbd_mapopt_err err;
		struct maps_entry *e = &m->entries[i];

		conf_defaults(e, &defaults);
		conf_session(m, e);
		if (!e->bad && ibnbd_mapopt_finish(&e->map, &err))
			maps_bad(m, e, e->name_at, say_dup(err.msg), NULL);
	}
	conf_free_entry(&defaults);
}

void maps_free(struct maps *m)
{
	size_t i;

	for (i = 0; i < m->nr; i++)
		conf_free_entry(&m->entries[i]);
	for (i = 0; i < m->nr_files; i++) {
		free(m->files[i].path);
		free(m->files[i].text);
	}
	for (i = 0; i < m->nr_diags; i++) {
		free(m->diags[i].msg);
		free(m->diags[i].hint);
	}
	free(m->entries);
	free(m->files);
	free(m->diags);
	free(m);
}
