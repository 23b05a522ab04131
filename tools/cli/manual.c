// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the parts of the manuals that come from the tables, in scdoc format: commands and options,
 * options of maps.conf, keys of server.conf.
 */
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/conf/maps_conf.h"
#include "tools/conf/server_conf.h"

static void manual_text(const char *text)
{
	for (; *text; text++)
		printf(strchr("[]_*\\", *text) ? "\\%c" : "%c", *text);
}

static void manual_commands(void)
{
	const struct cmd *c;

	printf("# COMMANDS\n\n");
	for (c = cmd_next(NULL); c; c = cmd_next(c)) {
		printf("*ibnbd %s* ", c->name);
		manual_text(c->words);
		printf("\n\t");
		manual_text(c->help);
		printf(".");
		if (c->more) {
			printf(" ");
			manual_text(c->more);
		}
		printf("\n\n");
		if (!c->options)
			continue;
		printf("\tOptions:");
		for (int j = 0; j < CMD_NR_OPTIONS; j++)
			if (c->options & (uint64_t)1 << j)
				printf(" --%s", cmd_options[j].name);
		printf("\n\n");
	}
}

static void manual_options(void)
{
	printf("# OPTIONS\n\n");
	for (int j = 0; j < CMD_NR_OPTIONS; j++) {
		const struct cmd_option_row *row = &cmd_options[j];

		putchar('*');
		if (row->letter)
			printf("-%c*, *", row->letter);
		printf("--%s*", row->name);
		if (row->value && row->value[0] == '[')
			printf("\\[=%.*s\\]", (int)strcspn(row->value + 1, "]"), row->value + 1);
		else if (row->value)
			printf(" _%s_", row->value);
		printf("\n\t");
		manual_text(row->help);
		printf(".\n\n");
	}
}

/* @fields: false leaves out the keys that are words of their own in a line of maps.conf. */
static void manual_grammar(bool fields)
{
	const struct ibnbd_mapopt *o = ibnbd_mapopts;

	for (size_t i = 0; i < IBNBD_MAPOPT_COUNT; i++) {
		if (!fields &&
		    (i == IBNBD_OPT_sessname || i == IBNBD_OPT_device_path || i == IBNBD_OPT_name))
			continue;
		printf("*%s*=", o[i].key);
		manual_text(o[i].value);
		printf("\n\t");
		manual_text(o[i].help);
		printf(".");
		if (o[i].alias)
			printf(" Also *%s*.", o[i].alias);
		if (o[i].kind == IBNBD_KIND_INT)
			printf(" %d to %d, default %d.", o[i].min, o[i].max, o[i].def);
		printf("\n\n");
	}
}

static void manual_maps(void)
{
	printf("# OPTIONS OF THE START\n\n");
	for (int j = 0; j < MAPS_NR_OPTIONS; j++) {
		putchar('*');
		manual_text(maps_options[j].key);
		putchar('*');
		if (maps_options[j].value)
			printf("=_%s_", maps_options[j].value);
		printf("\n\t");
		manual_text(maps_options[j].help);
		printf(".\n\n");
	}
	printf("*x-*...\n\tkept for your own programs.\n\n# OPTIONS OF THE MAPPING\n\n"
	       "\"-\" and \"\\_\" are the same in a key; *ro*, *rw* and *migration* alone mean "
	       "access_mode. *timeout* is refused here, since it could mean the start or a "
	       "request.\n\n");
	manual_grammar(false);
}

static void manual_server(void)
{
	printf("# KEYS\n\n");
	for (int j = 0; j < SERVER_NR_KEYS; j++) {
		printf("*%s*\n\t", server_keys[j].key);
		manual_text(server_keys[j].help);
		printf(".%s\n\n",
		       server_keys[j].runtime ?
			       "" :
			       " Counts when the module is loaded; after a change a restart of ibnbd-server.service does that.");
	}
}

int cmd_synopsis_run(struct cmd_args *a)
{
	const char *what = a->nr_words ? a->words[0] : "";

	if (!strcmp(what, "maps")) {
		manual_maps();
	} else if (!strcmp(what, "server")) {
		manual_server();
	} else {
		manual_commands();
		manual_options();
		printf("# OPTIONS OF A MAPPING\n\n"
		       "As --KEY VALUE or as KEY=VALUE; \"-\" and \"\\_\" are the same in a key.\n\n");
		manual_grammar(true);
	}
	return SAY_DONE;
}
