// SPDX-License-Identifier: GPL-2.0-only
/*
 * dump: all that is known, as one JSON document for a bug report. It holds no secrets. --anonymize
 * replaces addresses and names. The same address or name always gets the same replacement, so the
 * reader still sees what belongs together.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <ibtrs/version.h>
#include "tools/cmd/cmd.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/table.h"

static char **dump_names;
static size_t dump_nr;

static void dump_replace(char **field, const char *kind)
{
	size_t i;

	if (!*field)
		return;
	for (i = 0; i < dump_nr && strcmp(dump_names[i], *field);)
		i++;
	if (i == dump_nr) {
		dump_names = say_grow(dump_names, (dump_nr + 1) * sizeof(*dump_names));
		dump_names[dump_nr++] = say_dup(*field);
	}
	free(*field);
	*field = say_fmt("%s-%zu", kind, i + 1);
}

/*
 * The state_detail of a path is STATE [marginal] [-ERRNO WORDS]. The words may be the server's own,
 * with names and addresses in them.
 */
static void dump_hide_words(char **detail)
{
	char *number = *detail ? strstr(*detail, " -") : NULL,
	     *words = number ? strchr(number + 1, ' ') : NULL, *text __free(free) = NULL;

	if (!words)
		return;
	text = say_dup(words + 1);
	dump_replace(&text, "reason");
	*words = 0;
	say_append(detail, " %s", text);
}

static void dump_hide(struct state *s)
{
	for (size_t i = 0; i < s->nr_sessions + s->nr_srv_sessions; i++) {
		struct state_session *sess = &s->sessions[i];

		dump_replace(&sess->name, "session");
		dump_replace(&sess->auth, "key");
		for (size_t j = 0; j < (size_t)sess->nr_paths; j++) {
			struct state_path *p = &sess->paths[j];

			dump_replace(&p->session, "session");
			dump_replace(&p->src_addr, "address");
			dump_replace(&p->dst_addr, "address");
			dump_hide_words(&p->state_detail);
			free(p->name);
			p->name = say_fmt("%s@%s", p->src_addr ? p->src_addr : "",
					  p->dst_addr ? p->dst_addr : "");
		}
	}
	for (size_t i = 0; i < s->nr_devs; i++) {
		struct state_dev *d = &s->devs[i];

		dump_replace(&d->name, "name");
		dump_replace(&d->link, "link");
		dump_replace(&d->session, "session");
		dump_replace(&d->device_path, "device");
		dump_replace(&d->identity, "identity");
		dump_replace(&d->reason, "reason");
	}
	for (size_t i = 0; i < s->nr_exports; i++) {
		struct state_export *e = &s->exports[i];

		dump_replace(&e->name, "export");
		dump_replace(&e->identity, "identity");
		for (size_t j = 0; j < (size_t)e->nr_opens; j++) {
			dump_replace(&e->opens[j].export, "export");
			dump_replace(&e->opens[j].session, "session");
			dump_replace(&e->opens[j].mapping_path, "device");
		}
	}
}

/* Does the administrator choose it, as a name, a path or an address? */
static bool dump_is_chosen(const char *parameter)
{
	static const char *const chosen[] = { "allow", "dev_search_path", "writer_file" };

	for (size_t i = 0; i < ARRAY_SIZE(chosen); i++)
		if (!strcmp(parameter, chosen[i]))
			return true;
	return false;
}

static void dump_parameters(struct json *j, const char *module, bool hide)
{
	char *dir __free(free) = sysfs_path("module/%s/parameters", module);
	char **names __free(sysfs_list_free) = sysfs_list(dir, NULL);

	json_object(j, module);
	for (size_t i = 0; names[i]; i++) {
		char *value __free(free) = sysfs_attr(dir, names[i]);

		if (value && hide && dump_is_chosen(names[i]))
			dump_replace(&value, "text");
		json_text(j, names[i], value);
	}
	json_end(j);
}

int cmd_dump_run(struct cmd_args *a)
{
	static const char *const modules[] = { "ibtrs_core", "ibtrs_client", "ibtrs_server",
					       "ibnbd_client", "ibnbd_server" };
	struct maps *m __free(maps_free) = maps_load(VALUE(a, file));
	struct state *s __free(state_free) = state_read();
	bool hide = ARG(a, anonymize);
	struct utsname u = { 0 };
	struct json j;

	uname(&u);
	if (hide)
		dump_hide(s);
	json_document(&j, stdout, false);
	json_object(&j, "versions");
	json_text(&j, "tool", IBNBD_VERSION);
	json_text(&j, "kernel", u.release);
	json_text(&j, "machine", u.machine);
	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		char *dir __free(free) = sysfs_path("module/%s", modules[i]),
		     *version __free(free) = sysfs_attr(dir, "version");

		json_text(&j, modules[i], version);
	}
	json_end(&j);
	json_object(&j, "parameters");
	for (size_t i = 0; i < ARRAY_SIZE(modules); i++)
		dump_parameters(&j, modules[i], hide);
	json_end(&j);
	table_json_array(&j, &table_devs, s->devs, s->nr_devs);
	table_json_sessions(&j, "sessions", s->sessions, s->nr_sessions);
	table_json_sessions(&j, "server_sessions", s->srv_sessions, s->nr_srv_sessions);
	table_json_exports(&j, s);
	json_array(&j, "maps_conf");
	for (size_t i = 0; i < m->nr && !hide; i++) {
		char *line __free(free) = maps_line(&m->entries[i]);

		json_text(&j, NULL, line);
	}
	json_end(&j);
	json_num(&j, "maps_conf_errors", (int64_t)m->nr_errors);
	json_end(&j);
	for (size_t i = 0; i < dump_nr; i++)
		free(dump_names[i]);
	free(dump_names);
	return SAY_DONE;
}
