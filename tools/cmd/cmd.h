/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of options, and the struct that a command gets. This table and the table of commands
 * (cli/commands.h) generate the parser of the command line, `ibnbd help`, the synopsis of the
 * manual and the completion of three shells.
 */
#ifndef TOOLS_CMD_H
#define TOOLS_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ibnbd/logic/mapopt.h"
#include "tools/out/say.h"

/* X(id, short, long, value, help); value NULL = a flag, beginning with '[' = may be left out */
#define CMD_OPTIONS(X) \
X(help, 'h', "help", NULL, "what this command does") \
X(version, 'V', "version", NULL, "version of the command") \
X(dry_run, 'n', "dry-run", NULL, "print what would be written, change nothing") \
X(quiet, 'q', "quiet", NULL, "errors only") \
X(verbose, 'v', "verbose", NULL, "tell more; twice: also the kernel's last messages") \
X(color, 0, "color", "WHEN", "auto, always or never") \
X(json, 'J', "json", "[1]", "JSON, schema ibnbd/1") \
X(columns, 'o', "output", "COLUMNS", \
	"columns, +COLUMN to add, ^COLUMN to leave out; see --list-columns") \
X(list_columns, 0, "list-columns", NULL, "what there is for -o, --sort and --filter") \
X(sort, 's', "sort", "COLUMN", "sort by this column, ^COLUMN: the other way") \
X(filter, 'f', "filter", "COLUMN=TEXT", "only rows with this text; COLUMN!=TEXT: the others") \
X(bytes, 'b', "bytes", NULL, "sizes in bytes") \
X(noheadings, 'H', "noheadings", NULL, "no line of headings") \
X(raw, 'r', "raw", NULL, "columns separated by one blank, nothing cut") \
X(pairs, 'P', "pairs", NULL, "KEY=\"value\" pairs") \
X(csv, 0, "csv", NULL, "comma separated values") \
X(tree, 't', "tree", NULL, "mirrors with their legs, sessions with their paths and devices") \
X(idempotent, 0, "idempotent", NULL, "success if it is so already") \
X(force, 0, "force", NULL, \
	"what is refused otherwise, see the command; unmap: although it is in use, its I/O fails") \
X(all, 'a', "all", NULL, "all of them") \
X(save, 0, "save", NULL, "also write it to maps.conf.d") \
X(save_only, 0, "save-only", NULL, "only write it to maps.conf.d") \
X(forget, 0, "forget", NULL, "also remove its file from maps.conf.d") \
X(no_reload, 0, "no-reload", NULL, "no systemctl daemon-reload after a change") \
X(no_modprobe, 0, "no-modprobe", NULL, "do not load the driver") \
X(interval, 'i', "interval", "SECONDS", "again and again, rates since the last time") \
X(count, 'c', "count", "N", "end after so many reports") \
X(timeout, 'T', "wait", "SECONDS", "how long to wait, 0 = not at all") \
X(file, 0, "file", "FILE", "read this file in place of /etc/ibnbd/...") \
X(policy_file, 0, "policy-file", "FILE", "read this file in place of /etc/ibnbd/policy.conf") \
X(as_commands, 0, "as-commands", NULL, "as ibnbd map command lines") \
X(prune, 0, "prune", NULL, "also unmap what was removed from the file") \
X(remember, 0, "remember", NULL, "note what hold= was, for maps restore") \
X(missing, 0, "missing", NULL, "those that should be mapped and are not") \
X(session, 'S', "session", "SESSION", "of this session") \
X(assume_clean, 0, "assume-clean", NULL, "the legs hold the same already, nothing is copied") \
X(run, 0, "run", NULL, "without the legs that are missing") \
X(anonymize, 0, "anonymize", NULL, "replace addresses and names") \
X(next, 0, "next", NULL, "the key that is to follow the present one")

enum cmd_option {
#define CMD_OPTION_ENUM(id, ...) CMD_##id,
	CMD_OPTIONS(CMD_OPTION_ENUM)
#undef CMD_OPTION_ENUM
	CMD_NR_OPTIONS
};

#define CMD_BIT(id)	((uint64_t)1 << CMD_##id)
#define CMD_COMMON	(CMD_BIT(help) | CMD_BIT(version) | CMD_BIT(dry_run) | CMD_BIT(quiet) | \
			 CMD_BIT(verbose) | CMD_BIT(color))
#define CMD_TABLE	(CMD_BIT(json) | CMD_BIT(columns) | CMD_BIT(list_columns) | \
			 CMD_BIT(sort) | CMD_BIT(filter) | CMD_BIT(bytes) | CMD_BIT(noheadings) | \
			 CMD_BIT(raw) | CMD_BIT(pairs) | CMD_BIT(csv))

struct cmd_option_row {
	char letter;
	const char *name;
	const char *value;
	const char *help;
};

extern const struct cmd_option_row cmd_options[CMD_NR_OPTIONS];

/* Kinds of words that completion offers for a command. */
enum cmd_words {
	CMD_WORDS_NONE,
	CMD_WORDS_DEVICE,
	CMD_WORDS_SESSION,
	CMD_WORDS_PATH,
	CMD_WORDS_MAP,		/* names in maps.conf */
	CMD_WORDS_EXPORT,
	CMD_WORDS_COMMAND,
	CMD_WORDS_MIRROR,
	CMD_WORDS_ANY,		/* devices, sessions, exports */
};

/**
 * struct cmd_args - a command line that was understood
 * @value: of each option; a flag that is set has ""
 * @count: how often each option was given
 * @words: the words that are no options
 * @map: options of the mapping grammar
 * @host: values of path= with names of hosts, which are resolved when the device is mapped
 */
struct cmd_args {
	const struct cmd *cmd;
	const char *value[CMD_NR_OPTIONS];
	int count[CMD_NR_OPTIONS];
	const char **words;
	size_t nr_words;
	struct ibnbd_map map;
	const char *host[IBNBD_MAP_PATHS];
	size_t nr_hosts;
};

#define ARG(a, id)	((a)->count[CMD_##id] > 0)
#define VALUE(a, id)	((a)->value[CMD_##id])

enum {				/* flags of a command */
	CMD_MAPOPTS	= 0x1,	/* takes the mapping grammar, as --key value and as key=value */
	CMD_HIDDEN	= 0x2,
	CMD_INSTEAD	= 0x4,	/* --all, --session and --missing stand in place of its words */
};

struct cmd {
	const char *name;	/* one or two words */
	const char *words;	/* synopsis of the words */
	size_t min, max;
	uint64_t options;
	unsigned int flags;
	enum cmd_words what;
	int (*run)(struct cmd_args *a);
	const char *help;	/* one line */
	const char *more;	/* a paragraph, or NULL */
};

/* Its last row has no name. */
const struct cmd *cmd_table(void);
/* The first row, or the next one, of a command that people are told of; NULL: the end. */
const struct cmd *cmd_next(const struct cmd *c);

/*
 * Find the command of the first words and read the rest. @a->words is allocated. Returns SAY_DONE,
 * or the exit status.
 */
int cmd_parse(int argc, const char **argv, struct cmd_args *a);
/* Set an option of the mapping grammar by its key of @len bytes. SAY_DONE, or the exit status. */
int cmd_map_set(struct cmd_args *a, const char *key, size_t len, const char *value);
/* --wait, if it is given: at most a day, unless @endless. SAY_DONE, or the exit status. */
int cmd_wait(const struct cmd_args *a, bool endless, int64_t *seconds);
/* --count, if it is given. SAY_DONE, or the exit status. */
int cmd_count(const struct cmd_args *a, long *nr);
/* Replace words of the rnbd tool: *argv gets a new array. SAY_DONE, or the exit status. */
int cmd_legacy(int *argc, const char ***argv);

/* cli/help.c */
int cmd_help(const struct cmd *c);

/*
 * cmd_key.c: make the kernel hold the keys that /etc/ibnbd/keys holds, as `ibnbd key load` does.
 * @modprobe: load ibtrs-core, which has the keyring, if there are keys. Returns the exit status.
 */
int cmd_key_load_all(bool modprobe);

/* cmd_maps_run.c */
struct maps_entry;
/*
 * Check that the mapped disk is the one of uuid= and size=. A wrong disk is worse than none: it is
 * unmapped again, with an error.
 */
int maps_run_verify(const struct maps_entry *e);
/*
 * Map the device of the line. Tries for @timeout seconds: 0 = once, MAPS_FOREVER = without end.
 * Prints the messages, and tells systemd if systemd listens.
 */
int maps_run_start(struct maps_entry *e, int64_t timeout);

/* The commands: int cmd_NAME_run(struct cmd_args *a). */
#define COMMAND(name, words, min, max, options, flags, what, run, ...) int run(struct cmd_args *a);
#include "tools/cli/commands.h"
#undef COMMAND

#endif
