// SPDX-License-Identifier: GPL-2.0-only
/*
 * server.conf, policy.conf and keys, by the parsers of `ibnbd server`. All mistakes are printed,
 * and with a mistake nothing of the files counts: a server that starts does not, one that runs
 * keeps what it has. A key that this server does not know is said.
 */
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"
#include "tools/conf/key_file.h"
#include "tools/conf/policy_conf.h"
#include "tools/conf/server_conf.h"
#include "tools/out/say.h"

static bool conf_word(const char *value, const char *const *words, int *n)
{
	for (*n = 0; value && words[*n]; ++*n)
		if (!strcmp(value, words[*n]))
			return true;
	*n = 0;
	return false;
}

static bool conf_yes(const char *value, bool otherwise)
{
	return value ? *value == 'Y' : otherwise;
}

/* Keys of server.conf that mean nothing here. */
static void conf_unknown(const struct server_conf *f)
{
	if (f->value[SERVER_state_dir])
		say_warn("server.conf: ibnbd-serverd does not know state_dir, which is of a group (ibnbd group): its records are in writer_file");
}

/* NULL: it has a mistake. */
static struct serverd_conf *conf_of(const struct server_conf *f, struct policy_conf *p)
{
	static const char *const copy[] = { "auto", "always", "never", NULL };
	static const char *const io[] = { "auto", "blockio", "fileio", NULL };
	static const char *const auth[] = { "off", "optional", "required", NULL };
	const char *search = f->value[SERVER_dev_search_path], *why;
	const char *allow = f->value[SERVER_allow];
	struct serverd_conf *c = say_alloc(sizeof(*c));
	size_t pos;
	int n;

	c->search = say_dup(search ?: "");
	conf_word(f->value[SERVER_copy], copy, &n);
	c->copy = (enum serverd_copy)n;
	conf_word(f->value[SERVER_io_mode], io, &n);
	c->io_mode = (enum serverd_io_mode)n;
	conf_word(f->value[SERVER_auth], auth, &n);
	c->auth = (uint32_t)n;
	c->port = IBTRS_DEFAULT_PORT;
	if (f->value[SERVER_port_nr])
		c->port = (unsigned int)strtoul(f->value[SERVER_port_nr], NULL, 10);
	c->file_block = IBNBD_SECTOR_SIZE;
	if (f->value[SERVER_file_block])
		c->file_block = (u32)strtoul(f->value[SERVER_file_block], NULL, 10);
	c->max_maps = 1024;
	if (f->value[SERVER_max_maps])
		c->max_maps = (u32)strtoul(f->value[SERVER_max_maps], NULL, 10);
	c->claim = conf_yes(f->value[SERVER_claim], true);
	c->zeroes_for_all = conf_yes(f->value[SERVER_write_zeroes], false);
	if (f->value[SERVER_writer_file])
		c->writer_file = say_dup(f->value[SERVER_writer_file]);
	if (allow && *allow) {
		c->allow = say_alloc(sizeof(*c->allow));
		if (ibnbd_allow_parse(allow, strlen(allow), c->allow, &pos, &why))
			abort();		/* the file's parser has accepted it */
	}
	if (p->rules->nr) {
		c->policy = p->rules;
		p->rules = NULL;
	}
	return c;
}

struct serverd_conf *serverd_conf_load(const struct serverd_opts *o)
{
	struct server_conf *f = server_conf_load(o->config);
	struct policy_conf *p = policy_conf_load(o->policy);
	struct serverd_conf *c = NULL;

	policy_conf_needed(p, f);
	if (o->config && !f->there)
		say_error(0, "%s: there is no such file", o->config);
	if (o->policy && !p->there)
		say_error(0, "%s: there is no such file", o->policy);
	maps_print_diags(f->m);
	maps_print_diags(p->m);
	conf_unknown(f);
	if (!f->m->nr_errors && !p->m->nr_errors && (f->there || !o->config) &&
	    (p->there || !o->policy))
		c = conf_of(f, p);
	server_conf_free(f);
	policy_conf_free(p);
	return c;
}

void serverd_conf_free(struct serverd_conf *c)
{
	if (!c)
		return;
	free(c->search);
	free(c->allow);
	free(c->policy);
	free(c->writer_file);
	free(c);
}

unsigned int serverd_conf_key(void *priv, const char *name,
			      uint8_t key[IBTRS_SECRETS][IBTRS_SECRET_LEN])
{
	unsigned int n = 0;

	if (!ibtrs_key_name_ok(name, strlen(name)))
		return 0;
	n += !key_read(name, false, key[n]);
	n += !key_read(name, true, key[n]);
	return n;
}
