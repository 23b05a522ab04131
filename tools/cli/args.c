// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command line: finds the command, its options and its words. Options may stand anywhere. For a
 * word that is not understood, the error suggests a similar word.
 *
 * A command is one or two words. Each word may be abbreviated as long as only one command fits.
 * legacy.c accepts the abbreviations of the rnbd tool ("dev", "sess", "srv"). Commands with the
 * mapping grammar take each key of its table as --key value, --key=value and key=value.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <ibtrs/version.h>
#include "tools/cmd/cmd.h"
#include "tools/conf/maps_conf.h"
#include "tools/host/host.h"
#include "tools/host/sysfs.h"

const struct cmd_option_row cmd_options[CMD_NR_OPTIONS] = {
#define CMD_OPTION_ROW(id, letter, name, value, help) [CMD_##id] = { letter, name, value, help },
	CMD_OPTIONS(CMD_OPTION_ROW)
#undef CMD_OPTION_ROW
};

#define ANY	((size_t)-1)
#define O(id)	CMD_BIT(id)

#define COMMAND(...) { __VA_ARGS__ },
static const struct cmd commands[] = {
#include "tools/cli/commands.h"
	{ .name = NULL }
};

const struct cmd *cmd_table(void)
{
	return commands;
}

const struct cmd *cmd_next(const struct cmd *c)
{
	c = c ? c + 1 : commands;
	while (c->name && c->flags & CMD_HIDDEN)
		c++;
	return c->name ? c : NULL;
}

static_assert(CMD_NR_OPTIONS <= 64, "struct cmd.options has 64 bits");

/* ---- the command ---- */

/*
 * The word of a command's name that stands behind @first, NULL: at its begin. Allocated. NULL: its
 * name does not begin with @first, or has no other word.
 */
static char *args_word(const struct cmd *c, const char *first)
{
	size_t len = strcspn(c->name, " ");

	if (!first)
		return say_fmt("%.*s", (int)len, c->name);
	return !strncmp(c->name, first, len) && !first[len] && c->name[len] ?
		       say_dup(c->name + len + 1) :
		       NULL;
}

/*
 * Expands an abbreviated @word. @first: the first word of the command, if @word is the second.
 * Returns the full word, allocated, if all commands that fit have the same word there.
 */
static char *args_expand(const char *first, const char *word)
{
	size_t len = strlen(word), different = 0;
	char *found __free(free) = NULL;
	const struct cmd *c;

	for (c = commands; c->name; c++) {
		char *a __free(free) = args_word(c, first);

		if (a && !strcmp(a, word))
			return say_dup(word);
		if (!a || c->flags & CMD_HIDDEN || len < 2 || strncmp(a, word, len) ||
		    (found && !strcmp(a, found)))
			continue;
		different++;
		free(found);
		found = say_dup(a);
	}
	return different == 1 ? say_dup(found) : NULL;
}

static const struct cmd *args_find(const char *name)
{
	const struct cmd *c;

	for (c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static void args_suggest(const char *first, const char *word)
{
	unsigned int best = (unsigned int)strlen(word) / 2 + 1, distance;
	const char *near = NULL;
	const struct cmd *c;

	for (c = cmd_next(NULL); c; c = cmd_next(c)) {
		char *a __free(free) = args_word(c, first);

		distance = a ? say_distance(word, a) : best;
		if (distance < best) {
			best = distance;
			near = c->name;
		}
	}
	if (near && first)
		say_hint("ibnbd %s", near);
	else if (near)
		say_hint("ibnbd %.*s", (int)strcspn(near, " "), near);
	else
		say_hint("ibnbd help");
}

static const struct cmd *args_command(const char **words, size_t *nr)
{
	char *first __free(free) = *nr ? args_expand(NULL, words[0]) : NULL,
	     *second __free(free) = first && *nr > 1 ? args_expand(first, words[1]) : NULL,
	     *name __free(free) = second ? say_fmt("%s %s", first, second) : NULL;
	const struct cmd *c = first ? args_find(name ? name : first) : NULL;

	if (c) {
		*nr -= name ? 2 : 1;
		memmove(words, words + (name ? 2 : 1), *nr * sizeof(*words));
	} else if (!*nr) {
		cmd_help(NULL);
	} else if (!first) {
		say_error(SAY_USAGE, "no command \"%s\"", words[0]);
		args_suggest(NULL, words[0]);
	} else if (*nr > 1) {
		say_error(SAY_USAGE, "%s: no command \"%s\"", first, words[1]);
		args_suggest(first, words[1]);
	} else {
		say_error(SAY_USAGE, "%s: what about it?", first);
		say_hint("ibnbd help %s", first);
	}
	return c;
}

/* ---- options ---- */

static bool args_negative(const char *s)
{
	return s[0] == '-' && isdigit((unsigned char)s[1]);
}

static bool args_has(const struct cmd *c, int option)
{
	return option < CMD_NR_OPTIONS && (c->options | CMD_COMMON) >> option & 1;
}

/* Is it a key of the mapping grammar? '-' and '_' are the same, as in that grammar. */
static bool args_key(const char *s, size_t len)
{
	char *word __free(free) = say_fmt("%.*s", (int)len, s);

	return maps_grammar(word);
}

int cmd_map_set(struct cmd_args *a, const char *key, size_t len, const char *value)
{
	struct ibnbd_mapopt_err err;
	struct ibtrs_addr_pair pair;
	char *name __free(free) = say_fmt("%.*s", (int)len, key);
	bool path = !strcmp(name, "path") || !strcmp(name, "server");
	const char *why = NULL;

	/*
	 * Names of hosts are resolved later: a dry run, or an error in another option, then needs
	 * no name service.
	 */
	if (path && ibtrs_addr_pair_parse(value, strlen(value), &pair, &why) &&
	    host_is_name(value)) {
		if (a->nr_hosts == IBNBD_MAP_PATHS)
			return say_error(SAY_USAGE, "path=%s: more than %d paths", value,
					 IBNBD_MAP_PATHS);
		a->host[a->nr_hosts++] = value;
		return SAY_DONE;
	}
	if (!ibnbd_mapopt_set(&a->map, name, value, &err))
		return SAY_DONE;
	say_error(SAY_USAGE, "%s=%s: %s", name, value,
		  why ? host_wrong(value, why) : err.msg);
	return path ? say_hint("ibnbd map DEVICE SESSION [SOURCE,]DESTINATION..., addresses as 10.0.1.7, ip:[fe80::1%%eth2], gid:fe80:...:b2c3") :
		      SAY_USAGE;
}

static int args_unknown_option(const struct cmd *c, const char *word, size_t len)
{
	char *name __free(free) = say_fmt("%.*s", (int)len, word);
	const char *near = NULL;

	for (int i = 0; i < CMD_NR_OPTIONS; i++)
		if (args_has(c, i))
			near = say_nearest(name, near, cmd_options[i].name);
	for (size_t i = 0; c->flags & CMD_MAPOPTS && i < IBNBD_MAPOPT_COUNT; i++)
		near = say_nearest(name, near, ibnbd_mapopts[i].key);
	if (near)
		say_error(SAY_USAGE, "%s: no option --%s, did you mean --%s?", c->name, name, near);
	else
		say_error(SAY_USAGE, "%s: no option --%s", c->name, name);
	return say_hint("ibnbd help %s", c->name);
}

static int args_take(struct cmd_args *a, int id, const char *value)
{
	if (id == CMD_color) {
		say_colour = !strcmp(value, "always") ? SAY_ALWAYS :
			     !strcmp(value, "never")  ? SAY_NEVER :
							SAY_AUTO;
		if (say_colour == SAY_AUTO && strcmp(value, "auto"))
			return say_error(SAY_USAGE, "--color=%s: auto, always or never is expected",
					 value);
	}
	if (id == CMD_json && *value && strcmp(value, "1"))
		return say_error(SAY_USAGE, "--json=%s: this ibnbd knows schema 1 only", value);
	a->value[id] = value;
	a->count[id]++;
	return SAY_DONE;
}

/* Parses --name[=value]; advances *@i if the value is the next word. */
static int args_long(struct cmd_args *a, const char **argv, size_t *i, size_t nr)
{
	const char *name = argv[*i] + 2, *eq = strchr(name, '='), *value = eq ? eq + 1 : NULL;
	size_t len = eq ? (size_t)(eq - name) : strlen(name);
	bool key = a->cmd->flags & CMD_MAPOPTS && args_key(name, len);
	int id = 0;

	while (id < CMD_NR_OPTIONS &&
	       (strlen(cmd_options[id].name) != len || strncmp(cmd_options[id].name, name, len)))
		id++;
	if (!key && !args_has(a->cmd, id))
		return args_unknown_option(a->cmd, name, len);
	if (!key && !cmd_options[id].value) {
		if (value)
			return say_error(SAY_USAGE, "--%.*s takes no value", (int)len, name);
		return args_take(a, id, "");
	}
	if (!value && !key && cmd_options[id].value[0] == '[')
		return args_take(a, id, "");
	if (!value) {
		if (*i + 1 >= nr ||
		    (argv[*i + 1][0] == '-' && argv[*i + 1][1] && !args_negative(argv[*i + 1])))
			return say_error(SAY_USAGE, "--%s needs a value", name);
		value = argv[++*i];
	}
	return key ? cmd_map_set(a, name, len, value) : args_take(a, id, value);
}

static int args_short(struct cmd_args *a, const char **argv, size_t *i, size_t nr)
{
	const char *p;
	int id, rc;

	for (p = argv[*i] + 1; *p; p++) {
		for (id = 0; id < CMD_NR_OPTIONS && cmd_options[id].letter != *p;)
			id++;
		if (!args_has(a->cmd, id)) {
			say_error(SAY_USAGE, "%s: no option -%c", a->cmd->name, *p);
			return say_hint("ibnbd help %s", a->cmd->name);
		}
		if (!cmd_options[id].value || cmd_options[id].value[0] == '[') {
			rc = args_take(a, id, "");
			if (rc)
				return rc;
			continue;
		}
		if (p[1])
			return args_take(a, id, p + 1);
		if (*i + 1 >= nr)
			return say_error(SAY_USAGE, "-%c needs a value", *p);
		return args_take(a, id, argv[++*i]);
	}
	return SAY_DONE;
}

/* ---- all ---- */

/*
 * Finds the command before the options are known. The first words that are no options name it. So
 * an option with a value may stand before the command only as --x=y.
 */
static const struct cmd *args_split(size_t nr, const char **argv, const char **rest,
				    size_t *nr_rest)
{
	const char **words __free(free) = say_alloc((nr + 1) * sizeof(*words));
	size_t i, n = 0, skip, seen = 0;
	const struct cmd *c;

	for (i = 0; i < nr && strcmp(argv[i], "--"); i++)
		if (argv[i][0] != '-' || !argv[i][1])
			words[n++] = argv[i];
	if (!n && nr && (!strcmp(argv[0], "--version") || !strcmp(argv[0], "-V"))) {
		printf("ibnbd %s\n", IBNBD_VERSION);
		exit(SAY_DONE);
	}
	if (!n && nr && (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h")))
		exit(cmd_help(NULL));
	skip = n;
	c = args_command(words, &n);
	skip -= n;
	for (i = 0, *nr_rest = 0; c && i < nr; i++) {
		if (seen < skip && (argv[i][0] != '-' || !argv[i][1]))
			seen++;
		else
			rest[(*nr_rest)++] = argv[i];
	}
	return c;
}

static int args_words(struct cmd_args *a)
{
	const struct cmd *c = a->cmd;
	int many = !(c->flags & CMD_INSTEAD) ? 0 :
		   ARG(a, all)		     ? CMD_all :
		   ARG(a, session)	     ? CMD_session :
		   ARG(a, missing)	     ? CMD_missing :
					       0;
	/* Path commands take one word, the session, beside --all: then all its paths are meant. */
	size_t beside = c->what == CMD_WORDS_PATH;

	if (many && a->nr_words > beside) {
		say_error(SAY_USAGE, "%s: --%s, or \"%s\"? Not both", c->name,
			  cmd_options[many].name, a->words[beside]);
		return say_hint("ibnbd help %s", c->name);
	}
	if (a->nr_words < c->min && !many && !ARG(a, list_columns)) {
		say_error(SAY_USAGE, "%s: %s is missing", c->name, c->words);
		return say_hint("ibnbd help %s", c->name);
	}
	if (a->nr_words > c->max)
		return say_error(SAY_USAGE, "%s: \"%s\" is too much", c->name, a->words[c->max]);
	return SAY_DONE;
}

int cmd_parse(int argc, const char **argv, struct cmd_args *a)
{
	size_t nr = (size_t)argc, i, n = 0;
	const char **rest __free(free) = say_alloc((nr + 1) * sizeof(*rest));
	bool literal = false;
	int rc = SAY_DONE;

	memset(a, 0, sizeof(*a));
	ibnbd_mapopt_init(&a->map);
	a->words = say_alloc((nr + 1) * sizeof(*a->words));
	a->cmd = args_split(nr, argv, rest, &n);
	if (!a->cmd)
		rc = SAY_USAGE;
	for (i = 0; !rc && i < n; i++) {
		const char *w = rest[i], *eq = strchr(w, '=');

		if (!literal && !strcmp(w, "--"))
			literal = true;
		else if (!literal && !strncmp(w, "--", 2))
			rc = args_long(a, rest, &i, n);
		else if (!literal && w[0] == '-' && w[1] && !args_negative(w))
			rc = args_short(a, rest, &i, n);
		else if (!literal && a->cmd->flags & CMD_MAPOPTS && eq &&
			 args_key(w, (size_t)(eq - w)))
			rc = cmd_map_set(a, w, (size_t)(eq - w), eq + 1);
		else
			a->words[a->nr_words++] = w;
	}
	if (rc)
		return rc;
	say_level = ARG(a, quiet) ? -1 : a->count[CMD_verbose];
	sysfs_dry_run = ARG(a, dry_run);
	sysfs_dry_run_stderr = ARG(a, json);
	if (ARG(a, help))
		exit(cmd_help(a->cmd));
	if (ARG(a, version)) {
		printf("ibnbd %s\n", IBNBD_VERSION);
		exit(SAY_DONE);
	}
	return args_words(a);
}

int cmd_wait(const struct cmd_args *a, bool endless, int64_t *seconds)
{
	const char *said = VALUE(a, timeout);

	if (!said || (maps_span(said, seconds) &&
		      (endless || (*seconds >= 0 && *seconds <= 86400))))
		return SAY_DONE;
	return say_error(SAY_USAGE, "%s: --wait %s: a time%s is expected", a->cmd->name, said,
			 endless ? "" : " of at most a day");
}

int cmd_count(const struct cmd_args *a, long *nr)
{
	char *end = NULL;

	if (VALUE(a, count))
		*nr = strtol(VALUE(a, count), &end, 10);
	if (!end || (*nr > 0 && !*end))
		return SAY_DONE;
	return say_error(SAY_USAGE, "%s: --count %s: a number is expected", a->cmd->name,
			 VALUE(a, count));
}
