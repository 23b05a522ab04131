// SPDX-License-Identifier: GPL-2.0-only
/*
 * monitor: prints a line for each event. Disks send uevents, which are read from the kernel's
 * netlink group, so udev is not needed. Sessions and paths send none, so their state is read twice
 * a second. With --json each line is a JSON document.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/out/json.h"
#include "tools/conf/maps_conf.h"
#include "tools/host/mapping.h"

#define MONITOR_MS	500

struct monitor {
	bool json;
	long left;		/* events until the end; -1 = no end */
};

static void monitor_tell(struct monitor *m, const char *kind, const char *object, const char *event,
			 const char *detail)
{
	struct timespec t;
	char when[32];
	struct tm tm;
	struct json j;

	clock_gettime(CLOCK_REALTIME, &t);
	localtime_r(&t.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S%z", &tm);
	if (m->json) {
		json_document(&j, stdout, true);
		json_text(&j, "time", when);
		json_text(&j, "kind", kind);
		json_text(&j, "object", object);
		json_text(&j, "event", event);
		json_text(&j, "detail", detail);
		json_end(&j);
	} else {
		say_print("%s %-7s %s %s%s%s", when, kind, object, event, detail ? " " : "",
			  detail ? detail : "");
	}
	fflush(stdout);
	if (m->left > 0)
		m->left--;
}

/* The value of KEY= in a uevent of @n bytes, or NULL. */
static const char *monitor_env(const char *buf, size_t n, const char *key)
{
	size_t len = strlen(key), at;

	for (at = 0; at < n; at += strlen(buf + at) + 1)
		if (!strncmp(buf + at, key, len) && buf[at + len] == '=')
			return buf + at + len + 1;
	return NULL;
}

static char *monitor_detail(const char *buf, size_t n)
{
	const char *state = monitor_env(buf, n, "IBNBD_STATE"),
		   *reason = monitor_env(buf, n, "IBNBD_REASON"),
		   *writers = monitor_env(buf, n, "IBNBD_OTHER_WRITERS");

	if (state)
		return say_fmt("%s%s%s", state, reason && *reason ? ": " : "",
			       reason ? reason : "");
	if (writers)
		return say_fmt("another client has written (other_writers %s)", writers);
	return monitor_env(buf, n, "RESIZE") ? say_fmt("resized") : NULL;
}

/* add@/devices/virtual/block/ibnbd0\0ACTION=add\0... */
static void monitor_uevent(struct monitor *m, int fd)
{
	char buf[8192], *at, *name, *detail __free(free) = NULL;
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, 0);

	if (n <= 0)
		return;
	buf[n] = 0;
	at = strchr(buf, '@');
	name = strrchr(buf, '/');
	if (!at || !name || !strstr(buf, "/block/") || strncmp(name + 1, "ibnbd", 5))
		return;
	*at = 0;
	detail = monitor_detail(at + 1, n - (at + 1 - buf));
	monitor_tell(m, "device", name + 1, buf, detail);
}

static bool monitor_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* The sessions and paths of @s, beside how they are at another time: before, or after if @gone. */
static void monitor_paths(struct monitor *m, const struct state *s, struct state *other, bool gone)
{
	for (size_t i = 0; i < s->nr_sessions; i++) {
		const struct state_session *sess = &s->sessions[i];
		bool alone = !state_session(other, sess->name);

		if (alone && !gone)
			monitor_tell(m, "session", sess->name, "add", NULL);
		for (size_t j = 0; j < (size_t)sess->nr_paths; j++) {
			const struct state_path *p = &sess->paths[j],
						*b = state_path_then(other, p);
			char *object __free(free) = say_fmt("%s %s", sess->name, p->name);

			if (!b)
				monitor_tell(m, "path", object, gone ? "remove" : "add",
					     gone ? NULL : p->state_detail);
			else if (!gone && (!monitor_same(p->state, b->state) ||
					   !monitor_same(p->state_detail, b->state_detail)))
				monitor_tell(m, "path", object, p->state ? p->state : "change",
					     p->state_detail);
		}
		if (alone && gone)
			monitor_tell(m, "session", sess->name, "remove", NULL);
	}
}

static void monitor_devs(struct monitor *m, const struct state *now, const struct state *old)
{
	for (size_t i = 0; i < now->nr_devs; i++) {
		const struct state_dev *d = &now->devs[i], *b = state_dev_called(old, d->kname);

		if (b && !monitor_same(b->state_detail, d->state_detail))
			monitor_tell(m, "device", d->kname, d->state_detail ? d->state_detail : "?",
				     d->reason);
	}
}

int cmd_monitor_run(struct cmd_args *a)
{
	struct monitor m = { .json = ARG(a, json), .left = -1 };
	int64_t wait = MAPS_FOREVER;
	struct state *now, *old;
	struct pollfd p;
	time_t end = 0;
	int rc = cmd_count(a, &m.left);

	rc = rc ? rc : cmd_wait(a, true, &wait);
	if (rc)
		return rc;
	if (wait != MAPS_FOREVER)
		end = time(NULL) + (time_t)wait;
	p = (struct pollfd){ .fd = mapping_uevents(), .events = POLLIN };
	if (p.fd < 0)
		say_warn("no uevents: %s; states are still followed", strerror(errno));
	old = state_read();
	while (m.left && !ferror(stdout)) {
		if (poll(&p, 1, MONITOR_MS) > 0)
			monitor_uevent(&m, p.fd);
		now = state_read();
		monitor_paths(&m, now, old, false);
		monitor_paths(&m, old, now, true);
		monitor_devs(&m, now, old);
		state_free(old);
		old = now;
		if (end && time(NULL) >= end) {
			rc = m.left > 0 ? SAY_UNREACHABLE : SAY_DONE;
			break;
		}
	}
	state_free(old);
	say_close(p.fd);
	return rc;
}
