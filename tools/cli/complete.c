// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion. The shells' own parts, share/completion.*, call `ibnbd complete` with the words of a
 * command line, which reads only sysfs and the configuration, needs no privileges and never waits.
 * What may stand in place of the last word is printed, a line for each, with a tab and its
 * description behind it, if there is one.
 */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/out/escape.h"
#include "tools/conf/maps_conf.h"
#include "tools/conf/mirror_conf.h"
#include "tools/host/state.h"

/*
 * The shell inserts a completed word without quoting it. So words that need quotes are not offered.
 */
static void complete_word(const char *text)
{
	char *shown __free(free) = escape_text(ESCAPE_WORD, text);

	if (!strcmp(shown, text) && !text[strcspn(text, "\"$`'&|;<>()*?[]{}~#!\\")] && *text != '-')
		puts(text);
}

static void complete_words(enum cmd_words what)
{
	struct state *s __free(state_free) = state_read();
	size_t i, j;

	for (i = 0; (what == CMD_WORDS_DEVICE || what == CMD_WORDS_ANY) && i < s->nr_devs; i++) {
		complete_word(s->devs[i].kname);
		if (s->devs[i].name)
			complete_word(s->devs[i].name);
	}
	for (i = 0; i < s->nr_sessions; i++) {
		if (what == CMD_WORDS_SESSION || what == CMD_WORDS_ANY || what == CMD_WORDS_PATH)
			complete_word(s->sessions[i].name);
		for (j = 0; what == CMD_WORDS_PATH && j < (size_t)s->sessions[i].nr_paths; j++)
			complete_word(s->sessions[i].paths[j].name);
	}
	for (i = 0; (what == CMD_WORDS_EXPORT || what == CMD_WORDS_ANY) && i < s->nr_exports; i++)
		complete_word(s->exports[i].name);
	if (what == CMD_WORDS_MIRROR) {
		char *dir __free(free) = sysfs_root(MIRROR_DIR),
		     **names __free(sysfs_list_free) = sysfs_list_conf(dir, NULL);

		for (i = 0; names[i]; i++)
			complete_word(names[i]);
	}
	if (what == CMD_WORDS_MAP) {
		struct maps *m __free(maps_free) = maps_load(NULL);

		for (i = 0; i < m->nr; i++)
			complete_word(m->entries[i].name);
	}
}

static void complete_option(const char *name, bool value, const char *help)
{
	printf("--%s%s\t%s\n", name, value ? "=" : "", help);
}

static void complete_options(const struct cmd *c)
{
	const struct ibnbd_mapopt *o = ibnbd_mapopts;

	for (int i = 0; i < CMD_NR_OPTIONS; i++)
		if ((c->options | CMD_COMMON) & (uint64_t)1 << i)
			complete_option(cmd_options[i].name,
					cmd_options[i].value && cmd_options[i].value[0] != '[',
					cmd_options[i].help);
	for (size_t i = 0; c->flags & CMD_MAPOPTS && i < IBNBD_MAPOPT_COUNT; i++)
		complete_option(o[i].key, true, o[i].help);
}

/* The first words of all commands, each once. */
static void complete_commands(void)
{
	const struct cmd *c;
	size_t len = 0;

	for (c = cmd_next(NULL); c; c = cmd_next(c)) {
		if (c != cmd_table() && !strncmp(c[-1].name, c->name, len + 1))
			continue;
		len = strcspn(c->name, " ");
		printf("%.*s\t%s\n", (int)len, c->name, c->name[len] ? "commands about it" : c->help);
	}
}

/* What may stand at @word, behind @first and @second, which are NULL if they are not there. */
static void complete_at(const char *first, const char *second, const char *word)
{
	char *both __free(free) = second ? say_fmt("%s %s", first, second) : NULL;
	size_t len = strlen(first);
	const struct cmd *c;

	for (c = cmd_next(NULL); c; c = cmd_next(c)) {
		if (strcmp(c->name, first) && (!both || strcmp(c->name, both))) {
			if (!second && !strncmp(c->name, first, len) && c->name[len] == ' ')
				printf("%s\t%s\n", c->name + len + 1, c->help);
		} else if (*word == '-') {
			complete_options(c);
		} else if (c->what == CMD_WORDS_COMMAND) {
			complete_commands();
		} else {
			complete_words(c->what);
		}
	}
}

int cmd_complete_run(struct cmd_args *a)
{
	const char *before[2] = { NULL };
	size_t n = 0;

	/* the first one is that of the command itself */
	for (size_t i = 1; i + 1 < a->nr_words && n < ARRAY_SIZE(before); i++)
		if (a->words[i][0] != '-')
			before[n++] = a->words[i];
	if (before[0])
		complete_at(before[0], before[1], a->words[a->nr_words - 1]);
	else
		complete_commands();
	return SAY_DONE;
}
