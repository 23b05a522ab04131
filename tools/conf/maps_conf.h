/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /etc/ibnbd/maps.conf and maps.conf.d/<any>.conf: what is to be mapped at boot, one line for each
 * mapping.
 *
 *	name  device  session  option...		# comment
 *	[defaults] option...				of this file
 *
 * Options are those of the mapping grammar (ibnbd/logic/mapopt.h), and those of the table below,
 * which say how the mapping is started and presented. "..." quotes, a trailing backslash continues
 * a line.
 *
 * A line with a mistake is not used, and the good lines are: so a boot does not fail because of a
 * typo. All mistakes are collected with their places, so `maps check` shows them in one pass. If
 * [defaults] has a mistake no line of its file is used.
 */
#ifndef TOOLS_MAPS_CONF_H
#define TOOLS_MAPS_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "ibnbd/logic/mapopt.h"
#include "tools/out/say.h"

#define MAPS_DIR	"/etc/ibnbd"	/* below IBNBD_ROOT */
#define MAPS_MAIN	"maps.conf"
#define MAPS_FOREVER	(-1)
#define MAPS_MAX	4096	/* mappings; each is compared with each */
#define MAPS_TOLD	100	/* mistakes of one file that are kept */

/* X(id, key, kind, value, help) */
#define MAPS_OPTIONS(X) \
X(nofail, "nofail", FLAG, NULL, "the boot goes on without a warning when it cannot be mapped") \
X(noauto, "noauto", FLAG, NULL, "not at boot, only when something asks for it") \
X(wait, "wait", FLAG, NULL, "the boot waits until it is mapped, at most start-timeout") \
X(nowait, "nowait", FLAG, NULL, \
	"the boot goes on after 10 seconds; mapping goes on in the background; the default") \
X(netdev, "_netdev", FLAG, NULL, "accepted, every mapping needs the network") \
X(override, "override", FLAG, NULL, "replaces a line of the same name in an earlier file") \
X(start_timeout, "start-timeout", SPAN, "TIME", \
	"how long the start goes on trying: 90s, 5min, 2h, infinity (the default)") \
X(scheduler, "scheduler", WORD, "NAME", "I/O scheduler, set by udev; none is the default") \
X(readahead, "readahead", NUMBER, "KIB", "read-ahead in KiB, set by udev") \
X(link, "link", LINK, "PATH", "one more link, below /dev/ibnbd") \
X(uuid, "uuid", WORD, "UUID", \
	"UUID of the file system or volume that must be on it; another one is unmapped again") \
X(size, "size", SIZE, "SIZE", "size that it must have, in bytes or with K, M, G, T, P") \
X(requires, "x-systemd.requires", UNIT, "UNIT", "another unit that must run first") \
X(after, "x-systemd.after", UNIT, "UNIT", "another unit after which it starts")

enum maps_option_id {
#define MAPS_OPTION_ENUM(id, ...) MAPS_##id,
	MAPS_OPTIONS(MAPS_OPTION_ENUM)
#undef MAPS_OPTION_ENUM
	MAPS_NR_OPTIONS
};

enum maps_kind { MAPS_FLAG, MAPS_SPAN, MAPS_WORD, MAPS_NUMBER, MAPS_LINK, MAPS_SIZE, MAPS_UNIT };

struct maps_option {
	const char *key;
	enum maps_kind kind;
	const char *value;
	const char *help;
};

extern const struct maps_option maps_options[MAPS_NR_OPTIONS];

/* A piece of a file. */
struct maps_at {
	size_t file, off, len;
};

struct maps_token {
	char *text;		/* without quotes */
	struct maps_at at;
	bool plain;		/* text is the same as in the file, byte for byte */
};

/* A logical line. */
struct maps_words {
	struct maps_token *t;
	size_t nr;
	bool bad;		/* it cannot be read, and the mistake was noted */
	struct maps_at comment;	/* from # on, without the end of the line; len 0 = there is none */
};

/**
 * struct maps_entry - a mapping
 * @map: name, device_path, sessname and the keys of the grammar; paths with names of hosts are in
 *	@host
 * @given: bit for each option of MAPS_OPTIONS that was said
 * @text: values of the options that have one
 * @number: the values as numbers: seconds, KiB, bytes
 * @own: words beginning with x-, the administrator's; kept as they are
 * @line: from the first byte to the newline, with continued lines
 * @comment: after its words
 * @bad: has a mistake, or was overridden: not to be used
 */
struct maps_entry {
	char name[IBNBD_MAP_NAME_LEN];
	struct ibnbd_map map;
	char *host[IBNBD_MAP_PATHS];
	size_t nr_hosts;
	bool made_session;	/* it said "-" */
	uint32_t given;
	char *text[MAPS_NR_OPTIONS];
	int64_t number[MAPS_NR_OPTIONS];
	char **own;
	size_t nr_own;
	struct maps_at line, comment, name_at, device_at, session_at;
	/* of the last path=; of each of map.path; of each of @host */
	struct maps_at path_at, addr_at[IBNBD_MAP_PATHS], host_at[IBNBD_MAP_PATHS];
	bool bad, overridden;
};

enum maps_level { MAPS_WARNING, MAPS_ERROR };

/**
 * struct maps_file - one file, or a directory in whose place something else stands
 * @text: @len bytes, then a NUL that does not count
 * @begin: offset of its first line, after a byte order mark
 * @uncontinued: a backslash at the end of a line does not continue the line
 * @refused: nothing of it is used
 * @no_defaults: its [defaults] has a mistake, at @defaults_at, and all its entries are bad
 * @told: how many mistakes it has, for each level
 */
struct maps_file {
	char *path;
	char *text;
	size_t len, begin;
	bool refused, uncontinued, no_defaults;
	struct maps_at defaults_at;
	unsigned int told[MAPS_ERROR + 1];
};

struct maps_diag {
	enum maps_level level;
	struct maps_at at;
	char *msg;
	char *hint;		/* or NULL */
};

struct maps {
	struct maps_entry *entries;
	size_t nr, room;
	struct maps_file *files;
	size_t nr_files;
	struct maps_diag *diags;
	size_t nr_diags;
	size_t nr_errors;
	size_t nr_refused;	/* files */
};

static inline bool maps_given(const struct maps_entry *e, enum maps_option_id id)
{
	return e->given & 1u << id;
}

/* Does the entry have the opposite of this option? */
static inline bool maps_opposed(const struct maps_entry *e, enum maps_option_id id)
{
	return (id == MAPS_wait && maps_given(e, MAPS_nowait)) ||
	       (id == MAPS_nowait && maps_given(e, MAPS_wait));
}

/*
 * Read @file alone, or with NULL all files of /etc/ibnbd; there a missing file counts as empty. If
 * a file is refused none of its lines is used, and that is a mistake of the whole file. Never NULL.
 */
struct maps *maps_load(const char *file);
void maps_free(struct maps *m);
DEFINE_FREE(maps_free, struct maps *)

/* Parse a text as one more file. After the last one, call maps_check() once. */
void maps_parse(struct maps *m, const char *path, const char *text, size_t len);
/*
 * Add a text as one more file, whose lines the caller reads. Mistakes of the file as a whole are
 * noted. Returns its index.
 */
size_t maps_add_file(struct maps *m, const char *path, const char *text, size_t len);
/* Refuse the file: nothing of it is used. Takes ownership of both texts. */
void maps_refuse(struct maps *m, size_t file, char *msg, char *hint);
struct file_text;
/* Refuse the file if @f was refused, with its reason. */
void maps_refuse_as(struct maps *m, size_t file, struct file_text *f);
/* Drop the entries from @first on. */
void maps_drop(struct maps *m, size_t first);
void maps_check(struct maps *m);
/* A usable entry, or NULL: there is none, or the device has no such text. */
struct maps_entry *maps_find(struct maps *m, const char *name);
struct maps_entry *maps_find_device(struct maps *m, const char *session, const char *device_path);

/* For how many seconds the start goes on trying, MAPS_FOREVER = without end. */
int64_t maps_start_timeout(const struct maps_entry *e);
/*
 * mapopt_format.c: the canonical line of the given keys, without newline, for maps.conf and the
 * kernel: logic/mapopt can parse every line that it is. Returns its length, or -EMSGSIZE when @size
 * is too small.
 */
int mapopt_format(const struct ibnbd_map *m, char *buf, size_t size);
/* The entry as one line, without newline. Allocated. */
char *maps_line(const struct maps_entry *e);
/* What the kernel calls the disk of this mapping, allocated; NULL: it is not mapped. */
char *maps_kname(const char *session, const char *device_path);
/*
 * Make the session name for "-": HOST-MACHINE@SERVER, where SERVER is the first path, or @host if
 * the mapping has no address. While a session lives that was made for this server, by an earlier
 * version or when the host had another name or id, it is that one, and first the one that has the
 * device. Returns NULL, or why no name is certain to be this host's alone, allocated.
 */
char *maps_make_session(struct ibnbd_map *map, const char *host);
#define MAPS_MACHINE_HINT "systemd-machine-id-setup gives it an id; or write a name in place of -"

/* Mistakes. */
void maps_error(struct maps *m, struct maps_at at, char *msg, char *hint);	/* takes both */
void maps_warn(struct maps *m, struct maps_at at, char *msg, char *hint);
void maps_print_diag(const struct maps *m, const struct maps_diag *d, FILE *f);
void maps_print_diags(const struct maps *m);	/* all of them, to stderr */
/* Print for each refused file why. Returns whether there is one. */
bool maps_say_refused(const struct maps *m);
/* Sort the mistakes by file and place. */
void maps_sort(struct maps *m);
/* Line and column, both from 1; the column counts characters. */
void maps_place(const struct maps *m, struct maps_at at, size_t *line, size_t *col);
/* FILE:LINE for a message, allocated. Slow: it counts the lines of the file up to @at. */
char *maps_where(const struct maps *m, struct maps_at at);

/*
 * maps_lex.c: read the next logical line, from @off. Returns where it ends. The caller frees the
 * words.
 */
size_t maps_lex(struct maps *m, size_t file, size_t off, struct maps_words *w);
void maps_words_free(struct maps_words *w);
/* Are there NULs among these bytes? They are noted as one mistake. */
bool maps_nul(struct maps *m, size_t file, size_t off, size_t len);
/*
 * Is there an invisible character at @s, or one that looks like a blank (ibnbd/logic/text.h), a
 * control character, or a byte that is not UTF-8? Returns it in words, allocated; NULL: no. @n gets
 * its length, which is 1 of the last two kinds only.
 */
char *maps_odd(const char *s, size_t left, size_t *n);

/*
 * maps_option.c: read one word after the first three, or a word that is the value of @key. Both
 * note mistakes and make the entry bad.
 */
void maps_take_option(struct maps *m, struct maps_entry *e, const struct maps_token *t,
		      bool defaults);
void maps_take_word(struct maps *m, struct maps_entry *e, const char *key,
		    const struct maps_token *t);
/* The option of the mapping grammar with this key, or NULL; '-' and '_' are the same in it. */
const struct ibnbd_mapopt *maps_grammar(const char *key);
/* Is it a value of access_mode, which may stand alone? */
bool maps_is_access(const char *word);
/* Is it such a value, or an option that needs none? */
bool maps_is_option(const char *word);
/* Note a mistake of this entry and make the entry bad. */
void maps_bad(struct maps *m, struct maps_entry *e, struct maps_at at, char *msg, char *hint);

/* maps_value.c */
bool maps_span(const char *s, int64_t *seconds);
bool maps_size(const char *s, int64_t *bytes);
/*
 * For an option that is a number, a word or a key: do both have the same value; give @to the value
 * of @from.
 */
bool maps_same_value(const struct ibnbd_map *a, const struct ibnbd_map *b,
		     enum ibnbd_mapopt_id id);
/* Gives @to the values that @from has of the options whose bits are in @opts. */
void maps_take_values(struct ibnbd_map *to, const struct ibnbd_map *from, uint32_t opts);
/* Are there but letters, digits and @others in it? */
bool maps_made_of(const char *s, const char *others);
/* A name as a part of a unit's name, as systemd-escape writes it. Allocated. */
char *maps_unit_escape(const char *name);

#endif
