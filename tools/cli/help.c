// SPDX-License-Identifier: GPL-2.0-only
/* Prints the help from the tables of commands and options. */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"

static void help_options(uint64_t which)
{
	for (int i = 0; i < CMD_NR_OPTIONS; i++) {
		const struct cmd_option_row *o = &cmd_options[i];
		char left[48], value[32] = "";

		if (!(which & (uint64_t)1 << i))
			continue;
		if (o->value)
			snprintf(value, sizeof(value), o->value[0] == '[' ? "[=%s" : " %s",
				 o->value + (o->value[0] == '['));
		snprintf(left, sizeof(left), "%c%c%s--%s%s", o->letter ? '-' : ' ',
			 o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name, value);
		printf("  %-28s %s\n", left, o->help);
	}
}

static void help_wrap(const char *text)
{
	size_t col = 0, len;

	for (; *text; text += len + (text[len] == ' ')) {
		len = strcspn(text, " ");
		if (col && col + 1 + len > 78) {
			putchar('\n');
			col = 0;
		}
		col += (size_t)printf("%s%.*s", col ? " " : "", (int)len, text);
	}
	putchar('\n');
}

static void help_mapopts(void)
{
	char left[80];
	const struct ibnbd_mapopt *o = ibnbd_mapopts;

	printf("\nOptions of the mapping, as --KEY VALUE or KEY=VALUE:\n");
	for (size_t i = 0; i < IBNBD_MAPOPT_COUNT; i++) {
		snprintf(left, sizeof(left), "%s=%s", o[i].key, o[i].value);
		printf("  %-28s %s\n", left, o[i].help);
	}
}

int cmd_help(const struct cmd *c)
{
	if (c) {
		printf("ibnbd %s %s\n\n", c->name, c->words);
		if (c->more)
			help_wrap(c->more);
		else
			printf("%s\n", c->help);
		printf("\nOptions:\n");
		help_options(c->options);
		help_options(CMD_COMMON);
		if (c->flags & CMD_MAPOPTS)
			help_mapopts();
		return SAY_DONE;
	}
	printf("ibnbd COMMAND [OPTION]... [WORD]...\n\n");
	for (c = cmd_next(NULL); c; c = cmd_next(c))
		printf("  %-18s %s\n", c->name, c->help);
	printf("\nOptions of every command:\n");
	help_options(CMD_COMMON);
	printf("\nibnbd help COMMAND tells more. Manuals: ibnbd(8), ibnbd-maps.conf(5), ibnbd-server.conf(5), ibnbd-policy.conf(5).\n");
	return SAY_DONE;
}

int cmd_help_run(struct cmd_args *a)
{
	char *name __free(free) = say_dup("");
	size_t i, found = 0;
	const struct cmd *c;

	for (i = 0; i < a->nr_words; i++)
		say_append(&name, "%s%s", i ? " " : "", a->words[i]);
	for (c = cmd_table(); c->name && *name; c++) {
		size_t len = strlen(name);

		if (strncmp(c->name, name, len) || (c->name[len] && c->name[len] != ' '))
			continue;
		if (found++)
			putchar('\n');
		cmd_help(c);
	}
	if (!*name)
		cmd_help(NULL);
	else if (!found)
		return say_error(SAY_USAGE, "help: no command \"%s\"", name);
	return SAY_DONE;
}
