// SPDX-License-Identifier: GPL-2.0-only
/*
 * The only access to /sys, and to the other files of the host that are read. What cannot be read is
 * NULL or SYSFS_UNKNOWN, never a guess. Errors are returned as errno, and the caller words the
 * message.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tools/out/say.h"
#include "tools/host/sysfs.h"

#define SYSFS_TEXT_MAX	(16u << 20)	/* modules.dep of a large kernel has more than one MiB */
#define SYSFS_RECORD_MAX 8192	/* of the kernel's log, which is read whole or not at all */

bool sysfs_dry_run;
bool sysfs_dry_run_stderr;

static const char *sysfs_env(const char *name, const char *otherwise)
{
	const char *s = getenv(name);

	return s && *s ? s : otherwise;
}

const char *sysfs_prefix(void)
{
	return sysfs_env("IBNBD_ROOT", "");
}

bool sysfs_redirected(void)
{
	return *sysfs_env("IBNBD_SYSFS", "") || *sysfs_prefix();
}

char *sysfs_path(const char *fmt, ...)
{
	const char *sys = sysfs_env("IBNBD_SYSFS", NULL);
	char *below __free(free) = NULL;
	va_list ap;

	va_start(ap, fmt);
	below = say_vfmt(fmt, ap);
	va_end(ap);
	return sys ? say_fmt("%s/%s", sys, below) :
		     say_fmt("%s/sys/%s", sysfs_prefix(), below);
}

char *sysfs_root(const char *fmt, ...)
{
	char *below __free(free) = NULL;
	va_list ap;

	va_start(ap, fmt);
	below = say_vfmt(fmt, ap);
	va_end(ap);
	return say_fmt("%s%s", sysfs_prefix(), below);
}

bool sysfs_exists(const char *path)
{
	return !access(path, F_OK);
}

int sysfs_read(int fd, size_t max, char **text, size_t *len)
{
	size_t size = 0;
	ssize_t n;

	*text = NULL;
	*len = 0;
	do {
		if (size - *len <= SYSFS_RECORD_MAX) {
			char *old = *text;

			size += size + 2 * SYSFS_RECORD_MAX;
			*text = say_alloc(size);
			if (old) {
				memcpy(*text, old, *len);
				explicit_bzero(old, *len);
			}
			free(old);
		}
		n = read(fd, *text + *len, size - *len - 1);
		if (n > 0)
			*len += (size_t)n;
		/* EPIPE: a record of the log was overwritten before it was read */
	} while (n < 0 ? errno == EINTR || errno == EPIPE : n && *len <= max);
	return n < 0 ? errno : 0;
}

char *sysfs_text(const char *path)
{
	/* never wait, whatever kind of file it is */
	int fd __free(say_close) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;
	char *text = NULL;
	size_t len;

	if (fd < 0)
		return NULL;
	err = sysfs_read(fd, SYSFS_TEXT_MAX, &text, &len);
	if (!err)
		err = len > SYSFS_TEXT_MAX ? EFBIG : memchr(text, 0, len) ? EILSEQ : 0;
	if (err) {
		free(text);
		errno = err;
		return NULL;
	}
	while (len && text[len - 1] == '\n')
		text[--len] = 0;
	return text;
}

char *sysfs_attr(const char *dir, const char *name)
{
	char *path __free(free) = say_fmt("%s/%s", dir, name);
	char *text = sysfs_text(path);

	if (text && !*text) {
		free(text);
		text = NULL;
	}
	return text;
}

int64_t sysfs_attr_num(const char *dir, const char *name)
{
	char *text __free(free) = sysfs_attr(dir, name), *end = text;
	int64_t n = text ? strtoll(text, &end, 10) : 0;

	return end == text ? SYSFS_UNKNOWN : n;
}

bool sysfs_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n && dir[n - 1] == '/')
		n--;
	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

char *sysfs_link(const char *path)
{
	char to[PATH_MAX];
	ssize_t n = readlink(path, to, sizeof(to) - 1);
	char *slash;

	if (n < 0)
		return NULL;
	to[n] = 0;
	slash = strrchr(to, '/');
	return say_dup(slash ? slash + 1 : to);
}

static int sysfs_not_hidden(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

int sysfs_is_conf(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return d->d_name[0] != '.' && len > 5 && !strcmp(d->d_name + len - 5, ".conf");
}

static int sysfs_not_dots(const struct dirent *d)
{
	return strcmp(d->d_name, ".") && strcmp(d->d_name, "..");
}

static char **list_those(const char *path, size_t *nr, int (*which)(const struct dirent *d))
{
	struct dirent **entries __free(free) = NULL;
	int n = scandir(path, &entries, which, versionsort), i;
	char **names;

	if (n < 0)
		n = 0;
	names = say_alloc(((size_t)n + 1) * sizeof(*names));
	for (i = 0; i < n; i++) {
		names[i] = say_dup(entries[i]->d_name);
		free(entries[i]);
	}
	if (nr)
		*nr = (size_t)n;
	return names;
}

char **sysfs_list(const char *path, size_t *nr)
{
	return list_those(path, nr, sysfs_not_hidden);
}

char **sysfs_list_conf(const char *path, size_t *nr)
{
	char **names = list_those(path, nr, sysfs_is_conf);

	for (size_t i = 0; names[i]; i++)
		names[i][strlen(names[i]) - strlen(".conf")] = 0;
	return names;
}

char **sysfs_list_all(const char *path)
{
	return list_those(path, NULL, sysfs_not_dots);
}

void sysfs_list_free(char **names)
{
	char **p;

	for (p = names; p && *p; p++)
		free(*p);
	free(names);
}

int64_t sysfs_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * (int64_t)1000000 + t.tv_nsec / 1000;
}

int sysfs_write(const char *dir, const char *name, const char *text)
{
	char *path __free(free) = say_fmt("%s/%s", dir, name),
	     *order __free(free) = say_quoted(text), *file __free(free) = say_quoted(path);
	int err = 0;

	if (sysfs_dry_run) {
		fprintf(sysfs_dry_run_stderr ? stderr : stdout, "echo %s > %s\n", order, file);
	} else {
		say_more("echo %s > %s", order, file);
		err = sysfs_store(path, text);
	}
	return err;
}

/* ---- programs ---- */

pid_t sysfs_spawn(const char *const argv[], int *out, bool errors)
{
	char *path __free(free) = sysfs_root("/sbin/%s", argv[0]);
	int fd[2] = { -1, -1 }, null;
	pid_t pid = out && pipe2(fd, O_CLOEXEC) ? -1 : fork();

	if (!pid) {
		null = out ? open("/dev/null", O_RDWR) : -1;
		if (out && (null < 0 || dup2(null, 0) < 0 || dup2(fd[1], 1) < 0 ||
			    dup2(errors ? fd[1] : null, 2) < 0))
			_exit(127);
		if (!strchr(argv[0], '/'))
			execv(path, (char *const *)argv);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	if (out) {
		close(fd[1]);
		*out = fd[0];
	}
	return pid;
}

int sysfs_wait(pid_t pid)
{
	int status;

	while (pid > 0 && waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			return -1;
	return pid > 0 ? status : -1;
}
