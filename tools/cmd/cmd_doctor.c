// SPDX-License-Identifier: GPL-2.0-only
/* doctor: checks all between a line in maps.conf and a disk that works, and says what to do. */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/doctor.h"
#include "tools/conf/fstab.h"
#include "tools/out/json.h"
#include "tools/host/live.h"
#include "tools/host/mapping.h"
#include "tools/cmd/server.h"

#define DOCTOR_SLOW_MS	30000

void doctor_find(struct doctor *d, const char *check, enum doctor_level level, char *hint,
		 const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->list = say_grow(d->list, (d->nr + 1) * sizeof(*d->list));
	d->list[d->nr++] = (struct doctor_finding){ check, level, say_vfmt(fmt, ap), hint };
	va_end(ap);
}

/* ---- files ---- */

/* A finding for each file that was refused, with the reason; then one for all other mistakes. */
static void doctor_mistakes(struct doctor *d, const char *check, const struct maps *m,
			    const char *hint)
{
	size_t i, files = 0, others;

	for (i = 0; i < m->nr_diags; i++) {
		const struct maps_diag *g = &m->diags[i];
		const struct maps_file *f = &m->files[g->at.file];

		if (g->level != MAPS_ERROR || g->at.off != SIZE_MAX || !f->refused)
			continue;
		doctor_find(d, check, DOCTOR_ERROR, g->hint ? say_dup(g->hint) : NULL,
			    "%s: %s; nothing of it is used", f->path, g->msg);
		files++;
	}
	others = m->nr_errors - files;
	if (others)
		doctor_find(d, check, DOCTOR_ERROR, say_dup(hint), "%zu mistake%s in %s", others,
			    others == 1 ? "" : "s", check);
}

static void doctor_fstab(struct doctor *d)
{
	struct maps *said __free(maps_free) = say_alloc(sizeof(*said));
	struct fstab_use *uses = fstab_uses(d->m, said), *u;

	doctor_mistakes(d, "fstab", said, "ibnbd maps check");
	for (u = uses; u->file; u++) {
		if (!u->netdev)
			doctor_find(d, "netdev", DOCTOR_ERROR,
				    say_fmt("add _netdev to its options in %s", u->file),
				    "%s: %s on %s%s%s has no _netdev: systemd would order it before the network",
				    u->file, u->target, u->source, u->via ? ", which needs " : "",
				    u->via ? u->via : "");
		else
			doctor_find(d, "netdev", DOCTOR_OK, NULL,
				    "%s: %s on %s waits for the network", u->file, u->target,
				    u->source);
	}
	fstab_free(uses);
}

static void doctor_enabled(struct doctor *d)
{
	char *path __free(free) =
		sysfs_root("/etc/systemd/system/remote-fs.target.wants/ibnbd-maps.target");
	size_t i, boot = 0;

	for (i = 0; i < d->m->nr; i++)
		boot += !d->m->entries[i].bad && !maps_given(&d->m->entries[i], MAPS_noauto);
	if (boot && !sysfs_exists(path))
		doctor_find(d, "boot", DOCTOR_WARNING,
			    say_dup("systemctl enable ibnbd-maps.target"),
			    "%zu mapping%s would not be mapped at boot", boot,
			    boot == 1 ? "" : "s");
}

static void doctor_files(struct doctor *d)
{
	struct server_conf *c __free(server_conf_free) = server_conf_load(NULL);
	struct policy_conf *p __free(policy_conf_free) = policy_conf_load(NULL);
	size_t warnings = d->m->nr_diags -
			  (d->m->nr_errors < d->m->nr_diags ? d->m->nr_errors : d->m->nr_diags);

	if (d->m->nr_errors)
		doctor_mistakes(d, "maps.conf", d->m, "ibnbd maps check");
	else if (warnings)
		doctor_find(d, "maps.conf", DOCTOR_WARNING, say_dup("ibnbd maps check"),
			    "%zu warning%s about maps.conf", warnings, warnings == 1 ? "" : "s");
	else if (d->m->nr)
		doctor_find(d, "maps.conf", DOCTOR_OK, NULL, "maps.conf: %zu mapping%s", d->m->nr,
			    d->m->nr == 1 ? "" : "s");
	doctor_fstab(d);
	doctor_enabled(d);
	policy_conf_needed(p, c);
	if (c->m->nr_errors)
		doctor_mistakes(d, "server.conf", c->m, "ibnbd server check");
	else if (c->value[SERVER_dev_search_path] && *c->value[SERVER_dev_search_path] &&
		 !d->s->server && !d->s->serverd)
		doctor_find(d, "server.conf", DOCTOR_WARNING,
			    say_dup("systemctl enable --now ibnbd-server"),
			    "server.conf names a directory, and nothing is exported: ibnbd-server is not loaded");
	if (p->m->nr_errors)
		doctor_mistakes(d, "policy.conf", p->m, "ibnbd server check");
}

/* ---- what runs ---- */

static void doctor_devs(struct doctor *d)
{
	for (size_t i = 0; i < d->s->nr_devs; i++) {
		const struct state_dev *v = &d->s->devs[i];
		const char *detail = v->state_detail ? v->state_detail : v->state ? v->state : "?";
		bool open = !strcmp(detail, "open"), fenced = !strncmp(detail, "fenced", 6);

		if (!open)
			doctor_find(d, "device", DOCTOR_ERROR,
				    say_fmt(fenced ?
						    "look at the server's disk, then: ibnbd remap %s" :
						    "ibnbd path list; ibnbd session reconnect --all; ibnbd remap %s",
					    v->kname),
				    "%s (%s of session %s) is %s%s%s", v->path,
				    v->device_path ? v->device_path : "?",
				    v->session ? v->session : "?", detail, v->reason ? ": " : "",
				    v->reason ? v->reason : "");
		if (open && v->oldest_ms >= DOCTOR_SLOW_MS)
			doctor_find(d, "slow", DOCTOR_WARNING,
				    say_dup("look at the server's disk (its log, iostat -x); io_timeout= breaks a path that does not answer"),
				    "%s (%s of session %s): its oldest request has waited for %lld s",
				    v->path, v->device_path ? v->device_path : "?",
				    v->session ? v->session : "?", (long long)v->oldest_ms / 1000);
		if (v->devno && strncmp(v->devno, "259:", 4))
			doctor_find(d, "lvm", DOCTOR_WARNING,
				    say_dup("lvm.conf: devices { types = [ \"ibnbd\", 64 ] }"),
				    "%s has block major %.*s, which LVM may not accept", v->path,
				    (int)strcspn(v->devno, ":"), v->devno);
	}
	for (size_t i = 0; i < d->m->nr; i++) {
		const struct maps_entry *e = &d->m->entries[i];

		if (!e->bad && !maps_given(e, MAPS_noauto) &&
		    !state_dev_of(d->s, e->map.sessname, e->map.device_path))
			doctor_find(d, "mapped", DOCTOR_ERROR, say_fmt("ibnbd map %s", e->name),
				    "%s is in maps.conf and not mapped", e->name);
	}
}

static char *doctor_path_hint(const char *session, const char *detail)
{
	if (detail && strstr(detail, "the session name is"))
		return say_dup(
			"two hosts use one session name: unmap it on one of them, and map there with another (sessname=, or a line of maps.conf)");
	if (detail && (strstr(detail, "the server says") || strstr(detail, "the server refuses")))
		return say_dup("on the server: ibnbd server check; its log");
	if (detail && strstr(detail, "-90"))
		return say_dup(
			"full-size packets get lost: the same MTU on both hosts and on all switches between? ping -M do -s 8972 ADDRESS tries 9000");
	if (detail && (strstr(detail, "-111") || strcasestr(detail, "refused") ||
		       strcasestr(detail, "reject")))
		return say_dup(
			"the server answers but does not listen on this port: systemctl status ibnbd-server there");
	if (detail && (strstr(detail, "-110") || strstr(detail, "-113") || strstr(detail, "-101") ||
		       strcasestr(detail, "route") || strcasestr(detail, "unreach")))
		return say_dup(
			"the server cannot be reached over this path: link, address, route, switch");
	return say_fmt("ibnbd session reconnect %s; ibnbd doctor -v shows the kernel's messages",
		       session);
}

static bool doctor_shared(struct doctor *d, const struct state_session *s, bool server)
{
	char *hint, *why __free(free) = live_shared(s, server, &hint);

	if (why)
		doctor_find(d, "path", DOCTOR_WARNING, hint, "%s", why);
	return why;
}

static void doctor_live(struct doctor *d)
{
	doctor_devs(d);
	for (size_t i = 0; i < d->s->nr_sessions; i++) {
		const struct state_session *s = &d->s->sessions[i];
		bool marginal = false, shared = doctor_shared(d, s, false);

		for (size_t j = 0; j < (size_t)s->nr_paths; j++) {
			const struct state_path *p = &s->paths[j];

			marginal |= p->marginal;
			if (p->up && p->marginal)
				doctor_find(d, "path", DOCTOR_WARNING,
					    strstr(p->state_detail, "-90") ?
						    doctor_path_hint(s->name, p->state_detail) :
						    say_dup("cable, port, switch, MTU of this path; if it stays up it is trusted again within a minute"),
					    "path %s of session %s works, but failed again and again: %s",
					    p->name, s->name, p->state_detail);
			else if (!p->up)
				doctor_find(d, "path", s->nr_up ? DOCTOR_WARNING : DOCTOR_ERROR,
					    doctor_path_hint(s->name, p->state_detail),
					    "path %s of session %s is down: %s", p->name, s->name,
					    p->state_detail ? p->state_detail : "?");
		}
		if (s->nr_paths == 1 && s->nr_up)
			doctor_find(d, "path", DOCTOR_WARNING,
				    say_fmt("ibnbd path add %s ADDRESS", s->name),
				    "session %s has one path: when it fails, nothing takes over",
				    s->name);
		else if (s->nr_up == s->nr_paths && !marginal && !shared)
			doctor_find(d, "path", DOCTOR_OK, NULL, "session %s: all %lld paths work",
				    s->name, (long long)s->nr_paths);
	}
	for (size_t i = 0; i < d->s->nr_srv_sessions; i++)
		doctor_shared(d, &d->s->srv_sessions[i], true);
}

/* ---- report ---- */

static const char *const doctor_words[] = { "ok", "warning", "error" };

static void doctor_text(const struct doctor *d)
{
	static const char *const colours[] = { "\033[32m", "\033[1;33m", "\033[1;31m" };
	bool paint = say_coloured(stdout);

	for (size_t i = 0; i < d->nr; i++) {
		const struct doctor_finding *f = &d->list[i];

		if (f->level == DOCTOR_OK && say_level < 0)
			continue;
		printf("%s%-7s%s  ", paint ? colours[f->level] : "", doctor_words[f->level],
		       paint ? "\033[0m" : "");
		say_print("%s", f->text);
		if (f->hint)
			say_print("         hint: %s", f->hint);
	}
}

static void doctor_json(const struct doctor *d)
{
	struct json j;

	json_list(&j, "findings");
	for (size_t i = 0; i < d->nr; i++) {
		json_object(&j, NULL);
		json_text(&j, "check", d->list[i].check);
		json_text(&j, "level", doctor_words[d->list[i].level]);
		json_text(&j, "message", d->list[i].text);
		json_text(&j, "hint", d->list[i].hint);
		json_end(&j);
	}
	json_close(&j);
}

int cmd_doctor_run(struct cmd_args *a)
{
	struct state *s __free(state_free) = state_read();
	struct maps *m __free(maps_free) = maps_load(VALUE(a, file));
	struct doctor d = { .s = s, .m = m };
	enum doctor_level worst = DOCTOR_OK;

	d.client = d.m->nr || d.s->nr_devs;
	doctor_modules(&d);
	doctor_rdma(&d);
	doctor_files(&d);
	doctor_keys(&d);
	doctor_servers(&d);
	doctor_live(&d);
	doctor_mirrors(&d);
	doctor_exports(&d);
	for (size_t i = 0; i < d.nr; i++)
		if (d.list[i].level > worst)
			worst = d.list[i].level;
	if (ARG(a, json))
		doctor_json(&d);
	else
		doctor_text(&d);
	if (worst != DOCTOR_OK && say_level > 0 && !ARG(a, json))
		mapping_kmsg(stdout, 20);
	for (size_t i = 0; i < d.nr; i++) {
		free(d.list[i].text);
		free(d.list[i].hint);
	}
	free(d.list);
	return (int)worst;
}
