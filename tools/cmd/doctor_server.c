// SPDX-License-Identifier: GPL-2.0-only
/*
 * doctor: does this host itself use a disk that clients have open, or may ask for?
 *
 * The driver prevents such shared use (law L23), except for uses that it cannot see, and except
 * when the administrator has turned this off (claim = no). If the driver refuses a disk to a client
 * for this reason, something on this host uses the disk: doctor names it.
 *
 * doctor asks, too: may any client write? A client without a key can choose the name of its
 * session, and a client that is not on a list of addresses cannot be told from another client.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "tools/cmd/doctor.h"
#include "tools/cmd/server.h"
#include "tools/host/mapping.h"

/*
 * Join @users into one text, as "it is mounted on /a, dm-3 (vg0-data) is built on it". Frees the
 * list. Allocated; NULL: it has no user.
 */
static char *exports_users(char **users)
{
	char *all = NULL;

	for (size_t i = 0; users[i]; i++)
		say_append(&all, "%s%s", all ? ", " : "", users[i]);
	sysfs_list_free(users);
	return all;
}

static void exports_mapped(struct doctor *d, const struct state_export *e)
{
	char *dir __free(free) = say_fmt("%s/block_dev", e->dir),
	     *used __free(free) = exports_users(e->block_dev ? mapping_disk_users(dir) :
							       mapping_file_users(e->name));
	const struct state_open *o = e->opens;
	int64_t i, writer = -1;

	for (i = 0; i < e->nr_opens && writer < 0; i++)
		if (o[i].read_only != 1)
			writer = i;
	if (used && writer >= 0)
		doctor_find(d, "export", DOCTOR_ERROR,
			    say_fmt("two masters destroy what is on a disk: end its use here, or: ibnbd server close %s --all --force",
				    e->name),
			    "session %s may write to %s, and this host uses it as well: %s",
			    o[writer].session, e->name, used);
	else if (used && e->nr_opens)
		doctor_find(d, "export", DOCTOR_WARNING,
			    say_dup("a client that mounts what another host writes to sees it broken; give it a snapshot"),
			    "session %s reads %s, which this host uses: %s", o->session, e->name,
			    used);
	if (e->identity && strstr(e->identity, "cannot be read"))
		doctor_find(d, "export", DOCTOR_WARNING,
			    say_dup("clients cannot tell it from another disk: mount sysfs at /sys and proc at /proc, let the kernel read them, and: ibnbd server close it; dmesg names the file"),
			    "%s is exported without an identity: %s", e->name, e->identity);
}

static bool exports_has(const struct doctor *d, const char *block_dev)
{
	for (size_t i = 0; block_dev && i < d->s->nr_exports; i++)
		if (d->s->exports[i].block_dev && !strcmp(d->s->exports[i].block_dev, block_dev))
			return true;
	return false;
}

struct exports_offers {
	struct doctor *d;
	bool claims;
};

/* Checks the disk behind a name of the search path, which a client may ask for. */
static bool exports_offered(const struct server_offer *o, void *arg)
{
	const struct exports_offers *of = arg;
	char *dir __free(free) = NULL, *kname __free(free) = NULL, *used __free(free) = NULL;
	dev_t dev;

	if (o->is_dir || !sysfs_node(o->path, &dev))
		return false;
	dir = sysfs_path("dev/block/%u:%u", major(dev), minor(dev));
	kname = sysfs_link(dir);
	used = kname && !exports_has(of->d, kname) ? exports_users(mapping_disk_users(dir)) : NULL;
	if (used)
		doctor_find(of->d, "export", of->claims ? DOCTOR_WARNING : DOCTOR_ERROR,
			    say_dup("end its use here, or take it out of dev_search_path; what LVM or md of this host take by themselves "
				    "is left out with global_filter in lvm.conf, or ARRAY <ignore> in mdadm.conf"),
			    of->claims ?
				    "%s is offered (%s), and no client can map it for writing while this host uses it: %s" :
				    "%s is offered (%s), and a client may write to it while this host uses it, for claim = no: %s",
			    o->shown, kname, used);
	return false;
}

/* ---- the policy ---- */

static void policy_anybody(struct doctor *d, const struct policy_conf *now, const char *search,
			   const char *allow, const char *unit)
{
	char *name __free(free) = NULL;

	if (!now || server_allow_bars(allow))
		return;
	name = server_policy_open_name(now->rules, search);
	if (name)
		doctor_find(d, "policy", DOCTOR_WARNING,
			    say_fmt("name addresses or keys in /etc/ibnbd/policy.conf, end it with: * deny; then: systemctl reload %s",
				    unit),
			    "any host that reaches the port may map %s and write to it: allow keeps out no address, and the policy %s",
			    name, now->rules->nr ? "does not deny it" : "no rules");
}

static void doctor_policy(struct doctor *d, const char *search, const char *allow, bool proved)
{
	struct policy_conf *now __free(policy_conf_free) = policy_conf_running(),
			   *file __free(policy_conf_free) = NULL;

	if (!now && errno == EACCES)
		doctor_find(d, "policy", DOCTOR_OK, NULL,
			    "the policy is not looked at: it is root's");
	file = policy_conf_load(NULL);
	if (!proved)
		policy_anybody(d, now, search, allow, "ibnbd-server");
	if (now && !file->m->nr_errors && !policy_conf_same(now, file))
		doctor_find(d, "policy", DOCTOR_WARNING,
			    say_dup(file->there ?
					    "systemctl reload ibnbd-server" :
					    "it is lost when the driver is unloaded; cat /sys/" POLICY_CTL
					    " shows it"),
			    file->there ?
				    "the policy that is in force is not that of %s" :
				    "there is a policy in force, and no %s",
			    file->m->files[0].path);
}

/* ibnbd-serverd has what the files say, since its last reload. */
static void doctor_serverd(struct doctor *d)
{
	struct server_conf *c __free(server_conf_free) = server_conf_load(NULL);
	struct policy_conf *p __free(policy_conf_free) = policy_conf_load(NULL);
	const char *search = c->value[SERVER_dev_search_path], *auth = c->value[SERVER_auth],
		   *claim = c->value[SERVER_claim];
	struct exports_offers offers = { d, !claim || *claim == 'Y' };
	char *at __free(free) = sysfs_root(STATE_SERVERD);
	size_t i, n = 0;

	for (i = 0; i < d->s->nr_exports; i++)
		n += !strncmp(d->s->exports[i].dir, at, strlen(at));
	doctor_find(d, "serverd", DOCTOR_OK, NULL,
		    "ibnbd-serverd runs, clients have %zu of its exports open", n);
	if (search && !d->s->server)
		server_offers(search, exports_offered, &offers);
	if (search && !(auth && !strcmp(auth, "required")))
		policy_anybody(d, p, search, c->value[SERVER_allow], "ibnbd-serverd");
}

void doctor_exports(struct doctor *d)
{
	char *dir __free(free) = sysfs_path("module/ibnbd_server/parameters"),
	     *search __free(free) = sysfs_attr(dir, "dev_search_path"),
	     *claim __free(free) = sysfs_attr(dir, "claim"),
	     *writers __free(free) = sysfs_attr(dir, "writer_file"),
	     *allow __free(free) = sysfs_attr(dir, "allow"),
	     *auth __free(free) = sysfs_attr(dir, "auth");
	struct exports_offers offers = { d, claim && !strcmp(claim, "Y") };

	for (size_t i = 0; i < d->s->nr_exports; i++)
		exports_mapped(d, &d->s->exports[i]);
	if (search)
		server_offers(search, exports_offered, &offers);
	/* without @writers the parameter is empty, or the driver is older and has none */
	if (search && d->s->server && !writers)
		doctor_find(d, "writers", DOCTOR_WARNING,
			    say_dup("writer_file in " SERVER_CONF ", /var/lib/ibnbd/writers if it is not there; then: systemctl restart ibnbd-server; dmesg says why a file cannot be used"),
			    "the server has no file that keeps who wrote last: its restart fences clients that hold writes");
	if (search && d->s->server)
		doctor_policy(d, search, allow, auth && !strcmp(auth, "required"));
	if (d->s->serverd)
		doctor_serverd(d);
}
