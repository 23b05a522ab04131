// SPDX-License-Identifier: GPL-2.0-only
/*
 * The commands of the rnbd tool: `ibnbd client device map vol/1 from store1 ip:10.0.0.7 ro`, `ibnbd
 * dev list sessname,devname json`, `ibnbd -s unmap ibnbd0`. They are recognised by their first word
 * (client, server, a noun) and translated to our commands before any other code sees them.
 *
 * An option word (json, force, all, ...) or a list of columns is translated only after a noun or a
 * context of the rnbd tool: in our own grammar the same word may be the name of a disk. One
 * exception: a plain `list` also accepts json, csv, noheaders and columns of that tool, because a
 * list changes nothing.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/out/table.h"

enum legacy_object { LEGACY_NONE, LEGACY_DEVICE, LEGACY_SESSION, LEGACY_PATH };

/* @words: "@(one|another)" */
static bool legacy_is(const char *word, const char *words)
{
	return !fnmatch(words, word, FNM_EXTMATCH);
}

static enum legacy_object legacy_object(const char *word)
{
	return legacy_is(word, "@(device|devices|dev|devs)") ? LEGACY_DEVICE :
	       legacy_is(word, "@(session|sessions|sess)") ? LEGACY_SESSION :
	       legacy_is(word, "@(path|paths)") ? LEGACY_PATH : LEGACY_NONE;
}

/* Translates a verb of the rnbd tool to our command; NULL = we have no such command. */
static const char *legacy_command(bool server, enum legacy_object object, const char *verb)
{
	static const struct {
		bool server;
		enum legacy_object object;
		const char *verb, *ours;
	} table[] = {
		{ false, LEGACY_DEVICE, "list", "list" },
		{ false, LEGACY_DEVICE, "map", "map" },
		{ false, LEGACY_DEVICE, "unmap", "unmap" },
		{ false, LEGACY_DEVICE, "remap", "remap" },
		{ false, LEGACY_DEVICE, "resize", "resize" },
		{ false, LEGACY_DEVICE, "recover", "remap" },
		{ false, LEGACY_SESSION, "list", "session list" },
		{ false, LEGACY_SESSION, "remap", "remap" },
		{ false, LEGACY_SESSION, "reconnect", "session reconnect" },
		{ false, LEGACY_SESSION, "recover", "session reconnect" },
		{ false, LEGACY_PATH, "list", "path list" },
		{ false, LEGACY_PATH, "disconnect", "path disconnect" },
		{ false, LEGACY_PATH, "reconnect", "path reconnect" },
		{ false, LEGACY_PATH, "recover", "path reconnect" },
		{ false, LEGACY_PATH, "readd", "path reconnect" },
		{ false, LEGACY_PATH, "add", "path add" },
		{ false, LEGACY_PATH, "delete", "path remove" },
		{ false, LEGACY_PATH, "remove", "path remove" },
		{ false, LEGACY_PATH, "policy", "path policy" },
		{ true, LEGACY_DEVICE, "list", "server list" },
		{ true, LEGACY_DEVICE, "close", "server close" },
		{ true, LEGACY_SESSION, "list", "session list" },
		{ true, LEGACY_SESSION, "disconnect", "server disconnect" },
		{ true, LEGACY_PATH, "list", "path list" },
		{ true, LEGACY_PATH, "disconnect", "server disconnect" },
	};

	if (object != LEGACY_NONE && !strcmp(verb, "show"))
		return "show";
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].server == server && table[i].object == object &&
		    !strcmp(table[i].verb, verb))
			return table[i].ours;
	return NULL;
}

/*
 * @bare: the line could be one of our own, as `ibnbd list json`: only json, csv and noheaders are
 * translated. A disk of the name json is listed by `ibnbd list -- json`.
 */
static const char *legacy_option(const char *word, bool list, bool bare)
{
	static const struct { const char *word, *ours;
	} table[] = {
		{ "json", "--json" },
		{ "csv", "--csv" },
		{ "noheaders", "--noheadings" },
		{ "force", "--force" },
		{ "all", "--all" },
		{ "verbose", "-v" },
		{ "help", "--help" },
		{ "B", "--bytes" },
	};
	size_t i, nr = bare ? 3 : ARRAY_SIZE(table);

	if (list && !bare && !strcmp(word, "all"))
		return "--output=all";
	for (i = 0; i < nr; i++)
		if (!strcmp(word, table[i].word))
			return table[i].ours;
	return !bare && legacy_is(word, "@(term|notree|nototals|[KMGTPE])") ? "" : NULL;
}

/* Translates -s and -d of the rnbd tool, which are allowed only before its first word. */
static const char *legacy_flag(const char *word)
{
	if (!strcmp(word, "-s") || !strcmp(word, "--simulate"))
		return "--dry-run";
	if (!strcmp(word, "-d") || !strcmp(word, "--debug"))
		return "-v";
	return NULL;
}

/* Does option @word take the next word as its value? Mapping options always do. */
static bool legacy_takes_value(const char *word)
{
	size_t len = strlen(word);

	if (word[0] != '-' || len < 2 || strchr(word, '='))
		return false;
	for (int i = 0; i < CMD_NR_OPTIONS; i++)
		if (word[1] == '-' ? !strcmp(word + 2, cmd_options[i].name) :
				     word[len - 1] == cmd_options[i].letter)
			return cmd_options[i].value && cmd_options[i].value[0] != '[';
	return word[1] == '-' && word[2];
}

/* ---- columns ---- */

static const struct table_set *legacy_set(bool server, enum legacy_object object)
{
	return object == LEGACY_SESSION ? &table_sessions :
	       object == LEGACY_PATH	? &table_paths :
	       server			? &table_opens :
					  &table_devs;
}

/*
 * Translates the rnbd tool's name of a column to ours; our own names stay; NULL = neither. @theirs:
 * the name exists only in the rnbd tool.
 */
static const char *legacy_column(bool server, const struct table_set *set, const char *word,
				 size_t len, bool *theirs)
{
	static const struct {
		const char *word;
		const struct table_set *set;
		const char *ours;
	} table[] = {
		{ "sessname", &table_sessions, "name" },
		{ "sessname", NULL, "session" },
		{ "devname", &table_opens, "export" },
		{ "devname", NULL, "kname" },
		{ "mapping_path", &table_devs, "device_path" },
		{ "path_uu", NULL, "path_states" },
		{ "mp", NULL, "policy" },
		{ "mp_short", NULL, "policy" },
	};

	*theirs = true;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strlen(table[i].word) == len && !strncmp(table[i].word, word, len) &&
		    (!table[i].set || table[i].set == set))
			return table[i].ours;
	/* bytes sent and received, seen from the side (client or server) that was asked for */
	if (len == 2 && (!strncmp(word, "tx", 2) || !strncmp(word, "rx", 2)))
		return (*word == 't') == server ? "read_bytes" : "write_bytes";
	*theirs = false;
	for (size_t i = 0; i < set->type->nr; i++) {
		const char *key = set->type->fields[i].key;

		if (strlen(key) == len && !strncmp(key, word, len))
			return key;
	}
	return NULL;
}

/*
 * Translates the rnbd tool's list of columns, `sessname,devname` or `+identity,-state`, to the
 * argument of -o and appends it to @out. False: @word is no list of columns.
 */
static bool legacy_columns(const char *word, bool server, const struct table_set *set, bool bare,
			   char **out)
{
	bool one = !strchr(word, ',') && *word != '+', theirs;
	size_t len;
	const char *p, *ours;

	for (p = word; *p && *word != '+'; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		if (!legacy_column(server, set, p, len, &theirs) || (one && bare && !theirs))
			return false;
	}
	say_append(out, "%s", *out ? "," : "--output=");
	for (p = word; *p; p += len + (p[len] == ',')) {
		const char *how = *p == '+' ? "+" : *p == '-' || *p == '^' ? "^" : "";

		p += *how != 0;
		len = strcspn(p, ",");
		ours = legacy_column(server, set, p, len, &theirs);
		say_append(out, "%s%.*s%s", how, (int)(ours ? strlen(ours) : len), ours ? ours : p,
			   p[len] ? "," : "");
	}
	return true;
}

/* ---- all ---- */

/**
 * struct legacy - a command line of the rnbd tool
 * @bare: the line could be a list command of ours, too: fewer words are translated
 * @verb: index of the verb
 * @ours: our command
 */
struct legacy {
	bool server, context, bare, list;
	enum legacy_object object;
	int verb;
	const char *ours;
};

static bool legacy_recognise(struct legacy *l, int nr, const char **in, int first)
{
	bool noun, same;
	int i = first;

	l->server = i < nr && legacy_is(in[i], "@(server|serv|srv)");
	if (l->server || (i < nr && legacy_is(in[i], "@(client|clt|cli)"))) {
		l->context = true;
		i++;
	}
	if (i < nr)
		l->object = legacy_object(in[i]);
	noun = l->object != LEGACY_NONE;
	i += noun;
	if (i >= nr)
		return false;
	l->verb = i;
	l->list = !strcmp(in[i], "list");
	/*
	 * `path add`, `session list` and `server list` are our own commands, too. Then only the
	 * words of a list are translated.
	 */
	same = !l->context &&
	       (!noun || !strcmp(in[first], "path") || !strcmp(in[first], "session")) &&
	       !legacy_is(in[i], "@(delete|readd|recover|remap|show)");
	if (same && !l->list)
		return false;
	l->bare = same;
	if (!noun && !l->server && (l->context || l->list || !strcmp(in[i], "recover")))
		l->object = LEGACY_DEVICE;
	l->ours = legacy_command(l->server, l->object, in[i]);
	return l->ours;
}

static int legacy_words(const struct legacy *l, int nr, const char **in, const char **out, int *n)
{
	bool literal = false,
	     session = l->object == LEGACY_SESSION && !strcmp(in[l->verb], "remap");
	const struct table_set *set = legacy_set(l->server, l->object);
	static char *columns;
	const char *option;
	int output = 0;

	for (int i = l->verb + 1; i < nr; i++) {
		if (literal || legacy_takes_value(in[i - 1])) {
			out[(*n)++] = in[i];
			continue;
		}
		literal = !strcmp(in[i], "--");
		if (!strcmp(in[i], "xml")) {
			say_error(SAY_USAGE, "%s xml: XML is not written", in[l->verb]);
			say_hint("json in its place, or csv");
			return SAY_USAGE;
		}
		option = legacy_option(in[i], l->list, l->bare);
		if (option) {
			if (*option)
				out[(*n)++] = option;
		} else if (l->list && legacy_columns(in[i], l->server, set, l->bare, &columns)) {
			output = output ? output : (*n)++;
			out[output] = columns;
		} else {
			if (session && in[i][0] != '-')
				out[(*n)++] = "--session";
			session &= in[i][0] == '-';
			out[(*n)++] = in[i];
		}
	}
	return SAY_DONE;
}

int cmd_legacy(int *argc, const char ***argv)
{
	const char **in = *argv, **out;
	int nr = *argc, i = 0, n = 0, first, rc = SAY_DONE;
	struct legacy l = { 0 };
	static char two[32];
	char *blank;

	out = say_alloc(((size_t)nr + 5) * sizeof(*out));
	for (; i < nr && in[i][0] == '-'; i++) {
		/* our own grammar has none of these options before its command */
		l.context |= legacy_flag(in[i]) != NULL;
		out[n++] = legacy_flag(in[i]) ? legacy_flag(in[i]) : in[i];
	}
	first = i;
	if (first + 1 == nr && !strcmp(in[first], "version")) {
		n = 0;
		out[n++] = "--version";
	} else if (!legacy_recognise(&l, nr, in, first)) {
		for (i = first; i < nr; i++)
			out[n++] = in[i];
	} else {
		snprintf(two, sizeof(two), "%s", l.ours);
		out[n++] = two;
		blank = strchr(two, ' ');
		if (blank) {
			*blank = 0;
			out[n++] = blank + 1;
		}
		if (l.server && l.list && l.object != LEGACY_DEVICE)
			out[n++] = "--filter=side=server";
		rc = legacy_words(&l, nr, in, out, &n);
	}
	free(in);
	*argc = n;
	*argv = out;
	return rc;
}
