// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the files of maps.conf in /etc/ibnbd, finds entries in them, and writes an entry as a line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "tools/conf/file.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"
#include "tools/host/sysfs.h"
#include "tools/out/escape.h"

/* @named: the file must exist. */
static void file_take(struct maps *m, const char *path, bool named)
{
	size_t file = m->nr_files, first = m->nr;
	struct file_text f __free(file_free) = file_read(path, FILE_OURS, named);

	if (named || f.state != FILE_ABSENT)
		maps_parse(m, path, f.text ? f.text : "", f.len);
	if (named && f.state == FILE_ABSENT)
		maps_refuse(m, file, say_fmt("cannot be read: %s", strerror(ENOENT)), NULL);
	maps_refuse_as(m, file, &f);
	if (m->nr_files > file && m->files[file].refused)
		maps_drop(m, first);
}

/* Sort by bytes: the order is the same in each locale, and early in the boot. */
static int file_order(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void file_dir(struct maps *m, const char *dir)
{
	struct dirent **names __free(free) = NULL;
	int nr = scandir(dir, &names, sysfs_is_conf, file_order), i;
	char *why, *hint = NULL;
	struct stat st;

	if (nr < 0 && errno == ENOENT && lstat(dir, &st))
		return;
	why = nr < 0 ? say_fmt("cannot be read: %s",
			       errno == ENOENT ? "the link leads nowhere" : strerror(errno)) :
		       file_distrust(dir, &hint);
	if (why) {
		maps_parse(m, dir, "", 0);
		maps_refuse(m, m->nr_files - 1, why, hint);
	}
	for (i = 0; i < nr; i++) {
		char *path __free(free) = say_fmt("%s/%s", dir, names[i]->d_name);

		if (!why)
			file_take(m, path, false);
		free(names[i]);
	}
}

struct maps *maps_load(const char *file)
{
	char *main_file __free(free) = sysfs_root(MAPS_DIR "/" MAPS_MAIN),
	     *dir __free(free) = say_fmt("%s.d", main_file);
	struct maps *m = say_alloc(sizeof(*m));

	file_take(m, file ? file : main_file, file);
	if (!file)
		file_dir(m, dir);
	maps_check(m);
	return m;
}

struct maps_entry *maps_find(struct maps *m, const char *name)
{
	for (size_t i = 0; i < m->nr; i++)
		if (!m->entries[i].bad && !strcmp(m->entries[i].name, name))
			return &m->entries[i];
	return NULL;
}

struct maps_entry *maps_find_device(struct maps *m, const char *session, const char *device_path)
{
	for (size_t i = 0; session && device_path && i < m->nr; i++) {
		struct maps_entry *e = &m->entries[i];

		if (!e->bad && !strcmp(e->map.sessname, session) &&
		    !strcmp(e->map.device_path, device_path))
			return e;
	}
	return NULL;
}

int64_t maps_start_timeout(const struct maps_entry *e)
{
	return maps_given(e, MAPS_start_timeout) ? e->number[MAPS_start_timeout] : MAPS_FOREVER;
}

/* Write a word so that the lexer reads it back. Allocated. */
static char *file_quoted(const char *s)
{
	char *out = say_alloc(2 * strlen(s) + 3), *p = out, *shown __free(free) = escape_unseen(s);

	/* the lexer refuses an invisible character outside quotes */
	if (*s && *s != '#' && *s != '[' && !s[strcspn(s, " \t\"\\")] && !strcmp(shown, s))
		return strcpy(out, s);
	*p++ = '"';
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			*p++ = '\\';
		*p++ = *s;
	}
	*p = '"';
	return out;
}

static void file_append(char **line, const char *text)
{
	char *word __free(free) = file_quoted(text);

	say_append(line, " %s", word);
}

char *maps_line(const struct maps_entry *e)
{
	char grammar[IBNBD_MAP_LINE_MAX + 1], *line = say_dup(e->name), *save = NULL, *word;
	struct ibnbd_map options = e->map;

	file_append(&line, e->map.device_path);
	file_append(&line, e->made_session ? "-" : e->map.sessname);
	options.given &=
		~(1u << IBNBD_OPT_sessname | 1u << IBNBD_OPT_device_path | 1u << IBNBD_OPT_name);
	for (size_t i = 0; i < e->nr_hosts; i++)
		say_append(&line, " path=%s", e->host[i]);
	mapopt_format(&options, grammar, sizeof(grammar));
	for (word = strtok_r(grammar, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *at = strncmp(word, "path=", 5) ? NULL : strchr(word, '@');

		if (at)
			*at = ',';
		say_append(&line, " %s", word);
	}
	for (int j = 0; j < MAPS_NR_OPTIONS; j++) {
		char *option __free(free) = NULL;

		if (!maps_given(e, j))
			continue;
		option = say_fmt("%s%s%s", maps_options[j].key, maps_options[j].value ? "=" : "",
				 maps_options[j].value ? e->text[j] : "");
		file_append(&line, option);
	}
	for (size_t i = 0; i < e->nr_own; i++)
		file_append(&line, e->own[i]);
	return line;
}
