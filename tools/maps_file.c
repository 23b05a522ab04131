// SPDX-License-Identifier: GPL-2.0-only
/* The files of /etc/ibnbd together, and what is asked of them afterwards. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/maps_conf.h"
#include "tools/say.h"
#include "tools/sysfs.h"

#define FILE_TEXT_MAX	(16u << 20)

static void file_unreadable(struct maps *m, const char *path, const char *why)
{
	maps_parse(m, path, "", 0);
	maps_error(m, (struct maps_at){ m->nr_files - 1, SIZE_MAX, 0 }, say_fmt("cannot be read: %s", why), NULL);
}

/* Whoever can write this file decides which disks the machine gets. */
static void file_rights(struct maps *m, const struct stat *st)
{
	struct maps_at at = { m->nr_files - 1, SIZE_MAX, 0 };
	const char *path = m->files[at.file].path;

	if (st->st_mode & S_IWOTH)
		maps_error(m, at, say_dup("everybody can write to it"), say_fmt("chmod o-w %s", path));
	if (st->st_uid && st->st_uid != geteuid())
		maps_error(m, at, say_fmt("it belongs to user %u, not to root", (unsigned int)st->st_uid), say_fmt("chown root %s", path));
}

static void file_read(struct maps *m, const char *path, bool must)
{
	size_t len = 0, size = 0;
	char *text = NULL;
	struct stat st;
	ssize_t n = 0;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st)) {
		if (must || (errno != ENOENT && errno != ENOTDIR))
			file_unreadable(m, path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	if (S_ISDIR(st.st_mode)) {
		file_unreadable(m, path, "it is a directory");
		close(fd);
		return;
	}
	do {
		if (size - len < 4096) {
			size = size ? 2 * size : 16384;
			text = say_grow(text, size);
		}
		n = read(fd, text + len, size - len);
		if (n > 0)
			len += (size_t)n;
	} while (n > 0 && len < FILE_TEXT_MAX);
	err = errno;
	close(fd);
	if (n < 0) {
		file_unreadable(m, path, strerror(err));
	} else {
		maps_parse(m, path, text, len);
		if (S_ISREG(st.st_mode))
			file_rights(m, &st);
	}
	free(text);
}

static int file_is_conf(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return d->d_name[0] != '.' && len > 5 && !strcmp(d->d_name + len - 5, ".conf");
}

struct maps *maps_load(const char *file)
{
	struct maps *m = say_alloc(sizeof(*m));
	struct dirent **names = NULL;
	char *main_file, *dir, *path;
	int nr, i;

	if (file) {
		file_read(m, file, true);
		maps_check(m);
		return m;
	}
	main_file = sysfs_root(MAPS_DIR "/" MAPS_MAIN);
	dir = sysfs_root(MAPS_DIR "/" MAPS_MAIN ".d");
	file_read(m, main_file, false);
	nr = scandir(dir, &names, file_is_conf, alphasort);
	for (i = 0; i < nr; i++) {
		path = say_fmt("%s/%s", dir, names[i]->d_name);
		file_read(m, path, true);
		free(path);
		free(names[i]);
	}
	free(names);
	free(main_file);
	free(dir);
	maps_check(m);
	return m;
}

struct maps_entry *maps_find(struct maps *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->nr; i++)
		if (!m->entries[i].bad && !strcmp(m->entries[i].name, name))
			return &m->entries[i];
	return NULL;
}

struct maps_entry *maps_find_device(struct maps *m, const char *session, const char *device_path)
{
	size_t i;

	for (i = 0; i < m->nr; i++) {
		struct maps_entry *e = &m->entries[i];

		if (!e->bad && !strcmp(e->map.sessname, session) && !strcmp(e->map.device_path, device_path))
			return e;
	}
	return NULL;
}

int64_t maps_start_timeout(const struct maps_entry *e)
{
	return maps_given(e, MAPS_start_timeout) ? e->number[MAPS_start_timeout] : MAPS_FOREVER;
}

/* A word as the lexer reads it back. */
static char *file_quoted(const char *s)
{
	char *out = say_alloc(2 * strlen(s) + 3), *p = out;

	if (*s && *s != '#' && *s != '[' && !s[strcspn(s, " \t\"\\")])
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

static void file_append(char **line, char *word)
{
	char *longer = *line ? say_fmt("%s %s", *line, word) : say_dup(word);

	free(*line);
	free(word);
	*line = longer;
}

char *maps_line(const struct maps_entry *e)
{
	char grammar[IBNBD_MAP_LINE_MAX + 1], *line = NULL, *save = NULL, *word;
	struct ibnbd_map options = e->map;
	size_t i;
	int j;

	file_append(&line, say_dup(e->name));
	file_append(&line, file_quoted(e->map.device_path));
	file_append(&line, e->made_session ? say_dup("-") : file_quoted(e->map.sessname));
	options.given &= ~(1u << IBNBD_OPT_sessname | 1u << IBNBD_OPT_device_path | 1u << IBNBD_OPT_name);
	for (i = 0; i < e->nr_hosts; i++)
		file_append(&line, say_fmt("path=%s", e->host[i]));
	ibnbd_mapopt_format(&options, grammar, sizeof(grammar));
	for (word = strtok_r(grammar, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *at = strncmp(word, "path=", 5) ? NULL : strchr(word, '@');

		if (at)
			*at = ',';
		file_append(&line, say_dup(word));
	}
	for (j = 0; j < MAPS_NR_OPTIONS; j++) {
		if (!maps_given(e, j))
			continue;
		if (!maps_options[j].value) {
			file_append(&line, say_dup(maps_options[j].key));
			continue;
		}
		word = say_fmt("%s=%s", maps_options[j].key, e->text[j]);
		file_append(&line, file_quoted(word));
		free(word);
	}
	for (i = 0; i < e->nr_own; i++)
		file_append(&line, file_quoted(e->own[i]));
	return line;
}
