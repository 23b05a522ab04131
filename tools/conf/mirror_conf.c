// SPDX-License-Identifier: GPL-2.0-only
/* Reads and writes the files of mirrors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/conf/file.h"
#include "tools/conf/maps_conf.h"
#include "tools/conf/mirror_conf.h"
#include "tools/host/sysfs.h"
#include "tools/out/say.h"

const char *mirror_wrong_name(const char *name)
{
	if (!*name || *name == '.' || *name == '-' || !maps_made_of(name, "_.-"))
		return "it is made of letters, digits, '.', '_' and '-', and begins with none of '.' and '-'";
	return strlen(name) > MIRROR_NAME_MAX ? "md has room for 27 bytes" : NULL;
}

static void conf_free(struct mirror_conf *m)
{
	for (size_t i = 0; i < m->nr; i++) {
		free(m->leg[i].name);
		free(m->leg[i].identity);
	}
	free(m->name);
	free(m->uuid);
	m->name = NULL;
}

void mirror_conf_free(struct mirror_conf *list)
{
	struct mirror_conf *m;

	for (m = list; m && m->name; m++)
		conf_free(m);
	free(list);
}

struct mirror_conf *mirror_conf_find(struct mirror_conf *list, const char *name)
{
	struct mirror_conf *m;

	for (m = list; m->name; m++)
		if (!strcmp(m->name, name))
			return m;
	return NULL;
}

/* ---- reading ---- */

static char *conf_leg(struct mirror_conf *m, const char *value)
{
	size_t len = strcspn(value, " \t");

	if (m->nr == MIRROR_LEGS)
		return say_fmt("it has more than %d legs", MIRROR_LEGS);
	m->leg[m->nr].name = say_fmt("%.*s", (int)len, value);
	m->leg[m->nr++].identity = say_dup(value + len + strspn(value + len, " \t"));
	return NULL;
}

/* NULL, or why the line is wrong. @line is changed. */
static char *conf_line(struct mirror_conf *m, char *line)
{
	char *key __free(free) = NULL, *value __free(free) = NULL, *end;

	for (end = line + strlen(line); end > line && strchr(" \t\r", end[-1]); end--)
		end[-1] = 0;
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return NULL;
	if (sscanf(line, "%m[^ \t=] = %m[^\n]", &key, &value) != 2)
		return say_fmt("\"%s\" is no KEY = VALUE", line);
	if (!strcmp(key, "leg"))
		return conf_leg(m, value);
	if (!strcmp(key, "wait"))
		return maps_span(value, &m->wait) ? NULL : say_fmt("wait = %s is no time", value);
	if (strcmp(key, "uuid"))
		return say_fmt("there is no key \"%s\"", key);
	free(m->uuid);
	m->uuid = say_dup(value);
	return NULL;
}

/* The legs that the record has. It is ours: what cannot be read counts as empty. */
static void conf_record(struct mirror_conf *m)
{
	char *path __free(free) = sysfs_root("%s/%s", MIRROR_RECORDS, m->name),
	     *text __free(free) = sysfs_text(path), *line, *rest = text;

	while ((line = strsep(&rest, "\n")))
		for (size_t i = 0; i < m->nr; i++)
			m->leg[i].recorded |= !strcmp(m->leg[i].name, line);
}

static bool conf_read(struct mirror_conf *m, const char *path, const char *name, bool tell)
{
	char *line, *save = NULL, *why __free(free) = NULL;
	struct file_text f __free(file_free) = file_read(path, FILE_OURS, false);

	*m = (struct mirror_conf){ .name = say_dup(name), .wait = MIRROR_WAIT };
	if (f.state != FILE_THERE)
		why = say_dup(f.why ? f.why : strerror(ENOENT));
	for (line = why ? NULL : strtok_r(f.text, "\n", &save); line && !why;
	     line = strtok_r(NULL, "\n", &save))
		why = conf_line(m, line);
	if (!why && (!m->uuid || m->nr < 2))
		why = say_dup(m->uuid ? "it has fewer than two legs" : "it has no uuid");
	if (why && tell)
		say_error(SAY_USAGE, "%s: %s; nothing of it is used", path, why);
	if (why && tell && f.hint)
		say_hint("%s", f.hint);
	if (why)
		conf_free(m);
	else
		conf_record(m);
	return !why;
}

struct mirror_conf *mirror_conf_load(size_t *refused, bool tell)
{
	size_t nr, i;
	char *dir __free(free) = sysfs_root(MIRROR_DIR),
	     **names __free(sysfs_list_free) = sysfs_list_conf(dir, &nr);
	struct mirror_conf *list = say_alloc((nr + 1) * sizeof(*list)), *m = list;

	*refused = 0;
	for (i = 0; names[i]; i++) {
		char *path __free(free) = say_fmt("%s/%s.conf", dir, names[i]);

		if (conf_read(m, path, names[i], tell))
			m++;
		else
			++*refused;
	}
	return list;
}

/* ---- writing ---- */

static int conf_put(const char *path, const char *text)
{
	if (sysfs_dry_run) {
		fprintf(sysfs_dry_run_stderr ? stderr : stdout, "%s:\n%s", path, text);
		return SAY_DONE;
	}
	file_mkdirs(path);
	return say_errno(file_replace(path, text, strlen(text)), "%s: cannot be written", path);
}

int mirror_conf_write(const struct mirror_conf *m)
{
	char *path __free(free) = sysfs_root("%s/%s.conf", MIRROR_DIR, m->name),
	     *text __free(free) = say_fmt(
		     "# Made by ibnbd mirror create: see ibnbd(8), MIRRORS.\nuuid = %s\n", m->uuid);

	if (m->wait == MAPS_FOREVER)
		say_append(&text, "wait = infinity\n");
	else
		say_append(&text, "wait = %llds\n", (long long)m->wait);
	for (size_t i = 0; i < m->nr; i++)
		say_append(&text, "leg = %s%s%s\n", m->leg[i].name,
			   *m->leg[i].identity ? " " : "", m->leg[i].identity);
	return conf_put(path, text);
}

int mirror_record_write(const struct mirror_conf *m, unsigned int healthy)
{
	char *path __free(free) = sysfs_root("%s/%s", MIRROR_RECORDS, m->name),
	     *text __free(free) = say_dup("");

	for (size_t i = 0; i < m->nr; i++)
		if (healthy & 1u << i)
			say_append(&text, "%s\n", m->leg[i].name);
	return conf_put(path, text);
}
