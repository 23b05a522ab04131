// SPDX-License-Identifier: GPL-2.0-only
/*
 * The words of the rnbd tool: `ibnbd client device map vol/1 from store1 ip:10.0.0.7 ro`, `ibnbd dev list json`, `ibnbd -s unmap ibnbd0
 * force`. Recognised by their first word (client, server, a noun) and turned into ours before anything else looks at them.
 *
 * A word of an option (json, force, all, ...) is taken for one only behind a noun or context of that tool: in our own grammar it may be the name of
 * a disk.
 */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd.h"

enum legacy_object { LEGACY_NONE, LEGACY_DEVICE, LEGACY_SESSION, LEGACY_PATH };

static bool legacy_is(const char *word, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(word, *names))
			return true;
	return false;
}

static const char *const legacy_client[] = { "client", "clt", "cli", NULL };
static const char *const legacy_server[] = { "server", "serv", "srv", NULL };

static enum legacy_object legacy_object(const char *word)
{
	static const char *const device[] = { "device", "devices", "dev", "devs", NULL };
	static const char *const session[] = { "session", "sessions", "sess", NULL };
	static const char *const path[] = { "path", "paths", NULL };

	return legacy_is(word, device) ? LEGACY_DEVICE : legacy_is(word, session) ? LEGACY_SESSION :
	       legacy_is(word, path) ? LEGACY_PATH : LEGACY_NONE;
}

/* Verb of that tool to command of ours; NULL = there is none. */
static const char *legacy_command(bool server, enum legacy_object object, const char *verb)
{
	static const struct {
		bool server;
		enum legacy_object object;
		const char *verb, *ours;
	} table[] = {
		{ false, LEGACY_DEVICE, "list", "list" },		{ false, LEGACY_DEVICE, "show", "show" },
		{ false, LEGACY_DEVICE, "map", "map" },			{ false, LEGACY_DEVICE, "unmap", "unmap" },
		{ false, LEGACY_DEVICE, "remap", "remap" },		{ false, LEGACY_DEVICE, "resize", "resize" },
		{ false, LEGACY_DEVICE, "recover", "remap" },		{ false, LEGACY_SESSION, "list", "session list" },
		{ false, LEGACY_SESSION, "show", "show" },		{ false, LEGACY_SESSION, "reconnect", "session reconnect" },
		{ false, LEGACY_SESSION, "recover", "session reconnect" }, { false, LEGACY_PATH, "list", "path list" },
		{ false, LEGACY_PATH, "show", "show" },			{ false, LEGACY_PATH, "disconnect", "path disconnect" },
		{ false, LEGACY_PATH, "reconnect", "path reconnect" },	{ false, LEGACY_PATH, "recover", "path reconnect" },
		{ false, LEGACY_PATH, "readd", "path reconnect" },	{ false, LEGACY_PATH, "add", "path add" },
		{ false, LEGACY_PATH, "delete", "path remove" },	{ false, LEGACY_PATH, "remove", "path remove" },
		{ false, LEGACY_PATH, "policy", "path policy" },
		{ true, LEGACY_DEVICE, "list", "server list" },		{ true, LEGACY_DEVICE, "show", "show" },
		{ true, LEGACY_DEVICE, "close", "server close" },	{ true, LEGACY_SESSION, "list", "session list" },
		{ true, LEGACY_SESSION, "show", "show" },		{ true, LEGACY_SESSION, "disconnect", "server disconnect" },
		{ true, LEGACY_PATH, "list", "path list" },		{ true, LEGACY_PATH, "show", "show" },
		{ true, LEGACY_PATH, "disconnect", "server disconnect" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].server == server && table[i].object == object && !strcmp(table[i].verb, verb))
			return table[i].ours;
	return NULL;
}

static const char *legacy_option(const char *word)
{
	static const struct { const char *word, *ours; } table[] = {
		{ "json", "--json" },	{ "csv", "--csv" },		{ "force", "--force" },	{ "all", "--all" },
		{ "verbose", "-v" },	{ "help", "--help" },		{ "noheaders", "--noheadings" },
		{ "B", "--bytes" },	{ "term", "" },			{ "notree", "" },	{ "nototals", "" },
		{ "K", "" },		{ "M", "" },			{ "G", "" },		{ "T", "" },
		{ "P", "" },		{ "E", "" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (!strcmp(word, table[i].word))
			return table[i].ours;
	return NULL;
}

/* -s, -d, -c of that tool stand before the first word only; what they are here. */
static const char *legacy_flag(const char *word)
{
	if (!strcmp(word, "-s") || !strcmp(word, "--simulate"))
		return "--dry-run";
	if (!strcmp(word, "-d") || !strcmp(word, "--debug"))
		return "-v";
	return NULL;
}

void cmd_legacy(int *argc, const char ***argv)
{
	const char **in = *argv, **out, *ours, *verb;
	enum legacy_object object = LEGACY_NONE;
	int nr = *argc, i = 0, n = 0, first;
	bool server = false, context = false, list;
	static char two[32];
	char *blank;

	out = say_alloc(((size_t)nr + 4) * sizeof(*out));
	for (; i < nr && in[i][0] == '-'; i++)
		out[n++] = legacy_flag(in[i]) ? legacy_flag(in[i]) : in[i];
	first = i;
	if (i < nr && (legacy_is(in[i], legacy_client) || legacy_is(in[i], legacy_server))) {
		server = legacy_is(in[i], legacy_server);
		context = true;
		i++;
	}
	if (i < nr)
		object = legacy_object(in[i]);
	if (object != LEGACY_NONE)
		i++;
	verb = i < nr ? in[i] : NULL;
	if (verb && object == LEGACY_NONE && context && !server)
		object = LEGACY_DEVICE;
	ours = verb ? legacy_command(server, object, verb) : NULL;
	/* `path add` and `session list` are ours as well, `server list` too: those words need no translation. */
	if (!ours || (!context && (!strcmp(in[first], "path") || !strcmp(in[first], "session")) && strcmp(verb, "delete") &&
		      strcmp(verb, "readd") && strcmp(verb, "recover") && strcmp(verb, "show"))) {
		for (i = first; i < nr; i++)
			out[n++] = in[i];
		free(in);
		*argc = n;
		*argv = out;
		return;
	}
	snprintf(two, sizeof(two), "%s", ours);
	out[n++] = two;
	blank = strchr(two, ' ');
	if (blank) {
		*blank = 0;
		out[n++] = blank + 1;
	}
	list = !strcmp(verb, "list");
	if (server && list && object != LEGACY_DEVICE)
		out[n++] = "--filter=side=server";
	for (i++; i < nr; i++) {
		const char *option = legacy_option(in[i]);

		if (option && *option)
			out[n++] = option;
		else if (!option)
			out[n++] = in[i];
	}
	free(in);
	*argc = n;
	*argv = out;
}
