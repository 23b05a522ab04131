// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys as text, and reading them. file.c judges who owns the file and who can read it; this file
 * judges its content. Error messages name the file, and never show its content.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "tools/conf/file.h"
#include "tools/conf/key_file.h"
#include "tools/host/sysfs.h"
#include "tools/out/say.h"

#define KEY_PREFIX	"ibnbd-key:1:"
#define KEY_RAW_LEN	(IBTRS_KEY_LEN + 4)	/* the CRC-32 follows the key, little endian */
#define KEY_BASE64_LEN	(KEY_RAW_LEN / 3 * 4)

static_assert(KEY_RAW_LEN % 3 == 0, "base64 without padding");
static_assert(sizeof(KEY_PREFIX) + KEY_BASE64_LEN + 1 == KEY_TEXT_LEN, "a line");

static const char key_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static u32 key_crc(const u8 *data, size_t len)
{
	u32 crc = ~0u;
	int bit;

	while (len--) {
		crc ^= *data++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

void key_text(const u8 *key, char *text)
{
	u8 raw[KEY_RAW_LEN];
	u32 crc = key_crc(key, IBTRS_KEY_LEN), v;
	char *to = text + sizeof(KEY_PREFIX) - 1;
	size_t i;

	memcpy(raw, key, IBTRS_KEY_LEN);
	for (i = 0; i < 4; i++)
		raw[IBTRS_KEY_LEN + i] = (u8)(crc >> 8 * i);
	memcpy(text, KEY_PREFIX, sizeof(KEY_PREFIX) - 1);
	for (i = 0; i < KEY_RAW_LEN; i += 3) {
		v = (u32)raw[i] << 16 | raw[i + 1] << 8 | raw[i + 2];
		*to++ = key_digits[v >> 18];
		*to++ = key_digits[v >> 12 & 63];
		*to++ = key_digits[v >> 6 & 63];
		*to++ = key_digits[v & 63];
	}
	strcpy(to, "\n");
	explicit_bzero(raw, sizeof(raw));
}

/* Read @key from the text of a file. NULL: @key is good; else why it is not. */
static const char *key_parse(const char *text, size_t len, u8 *key)
{
	u8 raw[KEY_RAW_LEN];
	const char *digit, *why = NULL;
	u32 v = 0, crc = 0;
	size_t i;

	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	if (len < sizeof(KEY_PREFIX) - 1 || memcmp(text, KEY_PREFIX, sizeof(KEY_PREFIX) - 1))
		return "it is no key: it does not begin with " KEY_PREFIX;
	text += sizeof(KEY_PREFIX) - 1;
	len -= sizeof(KEY_PREFIX) - 1;
	if (len != KEY_BASE64_LEN)
		return "the key has another length: was it cut, or copied with something behind it?";
	for (i = 0; i < len && !why; i++) {
		digit = text[i] ? strchr(key_digits, text[i]) : NULL;
		if (!digit) {
			why = "the key has a character that is no base64";
			break;
		}
		v = v << 6 | (u32)(digit - key_digits);
		if (i % 4 == 3) {
			raw[i / 4 * 3] = (u8)(v >> 16);
			raw[i / 4 * 3 + 1] = (u8)(v >> 8);
			raw[i / 4 * 3 + 2] = (u8)v;
		}
	}
	for (i = 0; i < 4 && !why; i++)
		crc |= (u32)raw[IBTRS_KEY_LEN + i] << 8 * i;
	if (!why && crc != key_crc(raw, IBTRS_KEY_LEN))
		why = "the checksum of the key is wrong: copy it again";
	if (!why)
		memcpy(key, raw, IBTRS_KEY_LEN);
	explicit_bzero(raw, sizeof(raw));
	return why;
}

char *key_path(const char *name, bool next)
{
	char *dir = sysfs_root(KEY_FILE_DIR), *path;

	path = say_fmt("%s/%s%s", dir, name, next ? KEY_FILE_NEXT : "");
	free(dir);
	return path;
}

void key_guard(void)
{
	const struct rlimit none = { 0 };

	/* core_pattern may name a program, which is run whatever the limit is */
	prctl(PR_SET_DUMPABLE, 0);
	setrlimit(RLIMIT_CORE, &none);
}

int key_look(const char *name, bool next, u8 *key, char **said, char **hint)
{
	char *path = key_path(name, next);
	const char *why = NULL;
	struct file_text f;
	int err = 0;

	key_guard();
	*said = *hint = NULL;
	file_read(path, FILE_SECRET, false, &f);
	if (f.state == FILE_ABSENT) {
		err = ENOENT;
	} else if (f.state == FILE_REFUSED) {
		*said = say_fmt("%s: %s", path, f.why);
		*hint = f.hint ? say_dup(f.hint) : NULL;
		err = EINVAL;
	} else if ((why = key_parse(f.text, f.len, key))) {
		*said = say_fmt("%s: %s", path, why);
		err = EINVAL;
	}
	file_free(&f);	/* wipes the text */
	free(path);
	return err;
}

int key_read(const char *name, bool next, u8 *key)
{
	char *said, *hint;
	int err = key_look(name, next, key, &said, &hint);

	if (said)
		say_error(0, "%s", said);
	if (hint)
		say_hint("%s", hint);
	free(said);
	free(hint);
	return err;
}

/*
 * @path does not exist. Is the reason a link that leads nowhere, at @path or at a directory on the
 * way to it? Allocated; NULL = no.
 */
static char *key_dir_dangling(const char *path)
{
	char *part = say_dup(path), *slash, *why = NULL;
	struct stat st;

	while (!why && *part && lstat(part, &st)) {
		slash = strrchr(part, '/');
		*(slash ? slash : part) = 0;
	}
	if (*part && S_ISLNK(st.st_mode) && stat(part, &st))
		why = say_fmt("the link %s leads nowhere", part);
	free(part);
	return why;
}

int key_dir_check(char **why)
{
	char *path = sysfs_root(KEY_FILE_DIR);
	DIR *dir = opendir(path);
	int err = dir ? 0 : errno;

	*why = NULL;
	if (dir)
		closedir(dir);
	if (err == ENOENT)
		*why = key_dir_dangling(path);
	else if (err)
		*why = say_dup(strerror(err));
	free(path);
	return *why ? err : 0;
}

char **key_names(void)
{
	char *dir = sysfs_root(KEY_FILE_DIR), **names = sysfs_list(dir, NULL), *dot, *of;
	size_t from, to = 0, i;

	for (from = 0; names[from]; from++) {
		of = names[from];
		dot = strrchr(of, '.');
		if (dot && !strcmp(dot, KEY_FILE_NEXT))
			*dot = 0;
		for (i = 0; i < to && strcmp(names[i], of); i++)
			;
		if (i == to && ibtrs_key_name_ok(of, strlen(of)))
			names[to++] = of;
		else
			free(of);
	}
	names[to] = NULL;
	free(dir);
	return names;
}
