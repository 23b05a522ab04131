// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion for bash, zsh and fish. The scripts are generated once, when the package is built. For
 * words that change (devices, sessions) the scripts call `ibnbd complete KIND`, which reads only
 * sysfs and the configuration, needs no privileges and never waits.
 */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/out/escape.h"
#include "tools/conf/maps_conf.h"
#include "tools/conf/mirror_conf.h"
#include "tools/host/state.h"

static const char *const complete_kinds[] = {
	[CMD_WORDS_NONE] = "none",	 [CMD_WORDS_DEVICE] = "device",
	[CMD_WORDS_SESSION] = "session", [CMD_WORDS_PATH] = "path",
	[CMD_WORDS_MAP] = "map",	 [CMD_WORDS_EXPORT] = "export",
	[CMD_WORDS_COMMAND] = "command", [CMD_WORDS_MIRROR] = "mirror",
	[CMD_WORDS_ANY] = "any",
};

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

static bool complete_takes_value(int option)
{
	return cmd_options[option].value && cmd_options[option].value[0] != '[';
}

/* Commands and their options as lines of `name|kind of words|options`. */
static void complete_table_lines(void)
{
	const struct cmd *c;

	for (c = cmd_next(NULL); c; c = cmd_next(c)) {
		printf("%s|%s|", c->name, complete_kinds[c->what]);
		for (int j = 0; j < CMD_NR_OPTIONS; j++)
			if ((c->options | CMD_COMMON) & (uint64_t)1 << j)
				printf("--%s%s ", cmd_options[j].name,
				       complete_takes_value(j) ? "=" : "");
		for (size_t k = 0; c->flags & CMD_MAPOPTS && k < IBNBD_MAPOPT_COUNT; k++)
			printf("--%s= ", ibnbd_mapopts[k].key);
		putchar('\n');
	}
}

static void complete_bash(void)
{
	printf("# bash completion for ibnbd; made by `ibnbd complete bash`\n_ibnbd()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} line name kind options first= second= "
	       "w i words= all\n"
	       "\tCOMPREPLY=()\n"
	       "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	       "\t\tw=${COMP_WORDS[i]}\n"
	       "\t\t[[ $w == -* ]] && continue\n"
	       "\t\tif [[ -z $first ]]; then first=$w; elif [[ -z $second ]]; then second=$w; fi\n"
	       "\tdone\n"
	       "\twhile IFS='|' read -r name kind options; do\n"
	       "\t\tif [[ -z $first ]]; then words+=\" ${name%%%% *}\"\n"
	       "\t\telif [[ $name == \"$first $second\" || $name == \"$first\" ]]; then\n"
	       "\t\t\tif [[ $cur == -* ]]; then words+=\" $options\"\n"
	       "\t\t\telif [[ $kind == command ]]; then "
	       "words+=\" $(_ibnbd_table | cut -d'|' -f1 | cut -d' ' -f1)\"\n"
	       "\t\t\telif [[ $kind != none ]]; then "
	       "words+=\" $(ibnbd complete \"$kind\" 2>/dev/null)\"; fi\n"
	       "\t\telif [[ -z $second && $name == \"$first \"* ]]; then "
	       "words+=\" ${name#* }\"; fi\n"
	       "\tdone < <(_ibnbd_table)\n"
	       "\t# (compgen -W would expand a name like $(reboot))\n"
	       "\tread -r -d '' -a all <<< \"$words\"\n"
	       "\tfor w in \"${all[@]}\"; do [[ $w == \"$cur\"* ]] && COMPREPLY+=(\"$w\"); done\n"
	       "\tmapfile -t COMPREPLY < <([[ ${#COMPREPLY[@]} -eq 0 ]] || "
	       "printf '%%s\\n' \"${COMPREPLY[@]}\" | sort -u)\n"
	       "\t[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
	       "\treturn 0\n}\n\n_ibnbd_table()\n{\n\tcat <<'EOT'\n");
	complete_table_lines();
	printf("EOT\n}\n\ncomplete -F _ibnbd ibnbd\n");
}

/*
 * Escapes apostrophes for a '...' string of the shell and, for zsh, the special characters of a
 * description.
 */
static void complete_quoted(const char *text, bool zsh)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (zsh && strchr("[]:", *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

/* Of the commands of two words, is it the first one with its first word? */
static bool complete_is_first(const struct cmd *c)
{
	return c == cmd_table() || strncmp(c[-1].name, c->name, strcspn(c->name, " ") + 1);
}

static void complete_zsh(void)
{
	const struct cmd *c;

	printf("#compdef ibnbd\n# made by `ibnbd complete zsh`\n\n_ibnbd()\n{\n"
	       "\tlocal -a commands words_ options_\n\tlocal line name kind opts first second w\n"
	       "\tfor w in ${words[2,CURRENT-1]}; do\n\t\t[[ $w == -* ]] && continue\n"
	       "\t\tif [[ -z $first ]]; then first=$w; elif [[ -z $second ]]; then second=$w; fi\n"
	       "\tdone\n"
	       "\tif [[ -z $first ]]; then\n\t\tcommands=(\n");
	for (c = cmd_next(NULL); c; c = cmd_next(c)) {
		if (strchr(c->name, ' ')) {
			if (complete_is_first(c))
				printf("\t\t\t'%.*s:commands about it'\n",
				       (int)strcspn(c->name, " "), c->name);
			continue;
		}
		printf("\t\t\t'%s:", c->name);
		complete_quoted(c->help, true);
		printf("'\n");
	}
	printf("\t\t)\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
	       "\twhile IFS='|' read -r name kind opts; do\n"
	       "\t\tif [[ $name == \"$first $second\" || $name == $first ]]; then\n"
	       "\t\t\toptions_=(${(s: :)opts})\n"
	       "\t\t\tif [[ $PREFIX == -* ]]; then compadd -S '' -- ${options_[@]}\n"
	       "\t\t\telif [[ $kind != none && $kind != command ]]; then "
	       "words_+=(${(f)\"$(ibnbd complete $kind 2>/dev/null)\"}); fi\n"
	       "\t\telif [[ -z $second && $name == \"$first \"* ]]; then words_+=(${name#* }); fi\n"
	       "\tdone < <(_ibnbd_table)\n\t(( ${#words_} )) && compadd -- ${words_[@]}\n}\n\n"
	       "_ibnbd_table()\n{\n\tcat <<'EOT'\n");
	complete_table_lines();
	printf("EOT\n}\n\n_ibnbd \"$@\"\n");
}

/* Begins a line for fish, with its condition: which command is on the line already. */
static void complete_fish_when(const char *name)
{
	const char *blank = strchr(name, ' ');

	printf("complete -c ibnbd");
	if (!blank)
		printf(" -n '__fish_seen_subcommand_from %s'", name);
	else
		printf(" -n '__fish_seen_subcommand_from %.*s; and __fish_seen_subcommand_from %s'",
		       (int)(blank - name), name, blank + 1);
}

static void complete_fish(void)
{
	const struct cmd *c;

	printf("# fish completion for ibnbd; made by `ibnbd complete fish`\n"
	       "complete -c ibnbd -f\n");
	for (c = cmd_next(NULL); c; c = cmd_next(c)) {
		const char *blank = strchr(c->name, ' ');

		if (blank && complete_is_first(c))
			printf("complete -c ibnbd -n __fish_use_subcommand -a %.*s\n",
			       (int)(blank - c->name), c->name);
		if (blank)
			printf("complete -c ibnbd -n '__fish_seen_subcommand_from %.*s' -a %s -d '",
			       (int)(blank - c->name), c->name, blank + 1);
		else
			printf("complete -c ibnbd -n __fish_use_subcommand -a %s -d '",
			       c->name);
		complete_quoted(c->help, false);
		printf("'\n");
		if (c->what != CMD_WORDS_NONE && c->what != CMD_WORDS_COMMAND) {
			complete_fish_when(c->name);
			printf(" -a '(ibnbd complete %s 2>/dev/null)'\n",
			       complete_kinds[c->what]);
		}
		for (int j = 0; j < CMD_NR_OPTIONS; j++) {
			if (!((c->options | CMD_COMMON) & (uint64_t)1 << j))
				continue;
			complete_fish_when(c->name);
			printf(" -l %s", cmd_options[j].name);
			if (cmd_options[j].letter)
				printf(" -s %c", cmd_options[j].letter);
			printf("%s -d '", complete_takes_value(j) ? " -r" : "");
			complete_quoted(cmd_options[j].help, false);
			printf("'\n");
		}
		for (size_t k = 0; c->flags & CMD_MAPOPTS && k < IBNBD_MAPOPT_COUNT; k++) {
			complete_fish_when(c->name);
			printf(" -l %s -r -d '", ibnbd_mapopts[k].key);
			complete_quoted(ibnbd_mapopts[k].help, false);
			printf("'\n");
		}
	}
}

int cmd_complete_run(struct cmd_args *a)
{
	size_t i;

	if (!strcmp(a->words[0], "bash")) {
		complete_bash();
	} else if (!strcmp(a->words[0], "zsh")) {
		complete_zsh();
	} else if (!strcmp(a->words[0], "fish")) {
		complete_fish();
	} else {
		for (i = 0;
		     i < ARRAY_SIZE(complete_kinds) && strcmp(a->words[0], complete_kinds[i]);)
			i++;
		if (i == ARRAY_SIZE(complete_kinds))
			return say_error(
				SAY_USAGE,
				"complete: bash, zsh, fish, or a kind of words is expected, not %s",
				a->words[0]);
		complete_words((enum cmd_words)i);
	}
	return SAY_DONE;
}
