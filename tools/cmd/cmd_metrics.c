// SPDX-License-Identifier: GPL-2.0-only
/*
 * metrics: the text format of Prometheus, for a scraper or node_exporter's textfile directory.
 * Names are never changed, only added.
 */
#include <stdlib.h>
#include <string.h>
#include <ibtrs/version.h>
#include "tools/cmd/cmd.h"
#include "tools/out/escape.h"
#include "tools/conf/maps_conf.h"
#include "tools/host/state.h"

static void metrics_head(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/*
 * The value of a label must be UTF-8, else the scraper refuses the whole output. Any other byte is
 * printed as \xNN, and so is a newline. Backslashes and quotes are then escaped once more, as the
 * format requires.
 */
static void metrics_label(const char *key, const char *value, bool last)
{
	char *text = escape_text(ESCAPE_TEXT, value ? value : "");
	const char *s;

	printf("%s=\"", key);
	for (s = text; *s; s++) {
		if (*s == '\\' || *s == '"')
			putchar('\\');
		putchar(*s);
	}
	printf("\"%s", last ? "" : ",");
	free(text);
}

static void metrics_dev(const char *name, const struct state_dev *d, const char *key,
			const char *value, double n)
{
	printf("%s{", name);
	metrics_label("device", d->kname, false);
	metrics_label("name", d->name, false);
	metrics_label("session", d->session, false);
	metrics_label("export", d->device_path, !key);
	if (key)
		metrics_label(key, value, true);
	printf("} %.15g\n", n);
}

static void metrics_path(const char *name, const struct state_path *p, const char *key,
			 const char *value, double n)
{
	printf("%s{", name);
	metrics_label("session", p->session, false);
	metrics_label("path", p->name, false);
	metrics_label("hca", p->hca_name, !key);
	if (key)
		metrics_label(key, value, true);
	printf("} %.15g\n", n);
}

/* @at: offset in struct state_dev. A value that the driver does not show is left out. */
static void metrics_dev_one(const struct state *s, const char *name, const char *type,
			    const char *help, size_t at, double factor)
{
	size_t i;

	metrics_head(name, type, help);
	for (i = 0; i < s->nr_devs; i++) {
		int64_t n = *(const int64_t *)((const char *)&s->devs[i] + at);

		if (n != SYSFS_UNKNOWN)
			metrics_dev(name, &s->devs[i], NULL, NULL, (double)n * factor);
	}
}

static void metrics_devs(const struct state *s)
{
	static const char *const states[] = {
		"init", "open", "held", "failfast", "replaying", "failed", "fenced", "unmapped"
	};
	size_t i, j;

	metrics_head("ibnbd_device_state", "gauge", "1 for the state that the device is in");
	for (i = 0; i < s->nr_devs; i++)
		for (j = 0; j < ARRAY_SIZE(states); j++)
			metrics_dev("ibnbd_device_state", &s->devs[i], "state", states[j],
				    s->devs[i].state_detail &&
					    !strncmp(s->devs[i].state_detail, states[j],
						     strlen(states[j])));
	metrics_dev_one(s, "ibnbd_device_size_bytes", "gauge", "Size of the device",
			offsetof(struct state_dev, size), 1);
	metrics_dev_one(s, "ibnbd_device_unflushed_bytes", "gauge",
			"Bytes written that no flush has covered",
			offsetof(struct state_dev, unflushed_bytes), 1);
	metrics_dev_one(s, "ibnbd_device_replays_total", "counter",
			"Times that what was kept was sent again",
			offsetof(struct state_dev, replays), 1);
	metrics_dev_one(s, "ibnbd_device_replayed_bytes_total", "counter",
			"Bytes that were sent again",
			offsetof(struct state_dev, replayed_bytes), 1);
	metrics_dev_one(s, "ibnbd_device_losses_total", "counter",
			"Times that an administrator took the loss of such bytes",
			offsetof(struct state_dev, losses), 1);
	metrics_dev_one(s, "ibnbd_device_other_writers_total", "counter",
			"Times that another client had written when the device was opened again",
			offsetof(struct state_dev, other_writers), 1);
	metrics_dev_one(s, "ibnbd_device_oldest_request_seconds", "gauge",
			"Time that the oldest request has waited for its answer",
			offsetof(struct state_dev, oldest_ms), 1e-3);
}

static void metrics_path_pair(const struct state *s, const char *name, const char *help,
			      const char *label, const char *first, size_t first_at,
			      const char *second, size_t second_at)
{
	size_t i, j;

	metrics_head(name, "counter", help);
	for (i = 0; i < s->nr_sessions; i++) {
		for (j = 0; j < (size_t)s->sessions[i].nr_paths; j++) {
			const struct state_path *p = &s->sessions[i].paths[j];
			int64_t a = *(const int64_t *)((const char *)p + first_at),
				b = *(const int64_t *)((const char *)p + second_at);

			if (a != SYSFS_UNKNOWN)
				metrics_path(name, p, label, first, (double)a);
			if (b != SYSFS_UNKNOWN)
				metrics_path(name, p, label, second, (double)b);
		}
	}
}

static void metrics_path_one(const struct state *s, const char *name, const char *type,
			     const char *help, size_t at, double factor)
{
	size_t i, j;

	metrics_head(name, type, help);
	for (i = 0; i < s->nr_sessions; i++) {
		for (j = 0; j < (size_t)s->sessions[i].nr_paths; j++) {
			const struct state_path *p = &s->sessions[i].paths[j];
			int64_t n = *(const int64_t *)((const char *)p + at);

			if (n != SYSFS_UNKNOWN)
				metrics_path(name, p, NULL, NULL, (double)n * factor);
		}
	}
}

#define AT(field) offsetof(struct state_path, field)

static void metrics_paths(const struct state *s)
{
	size_t i, j;

	metrics_head("ibnbd_path_up", "gauge", "1 when the path is connected");
	for (i = 0; i < s->nr_sessions; i++)
		for (j = 0; j < (size_t)s->sessions[i].nr_paths; j++)
			metrics_path("ibnbd_path_up", &s->sessions[i].paths[j], NULL, NULL,
				     s->sessions[i].path_states[j] == 'U');
	metrics_head(
		"ibnbd_path_marginal", "gauge",
		"1 when the path has failed so often lately that it is used less than the others");
	for (i = 0; i < s->nr_sessions; i++)
		for (j = 0; j < (size_t)s->sessions[i].nr_paths; j++)
			metrics_path("ibnbd_path_marginal", &s->sessions[i].paths[j], NULL, NULL,
				     s->sessions[i].paths[j].marginal);
	metrics_path_pair(s, "ibnbd_path_bytes_total", "Bytes read and written", "dir", "read",
			  AT(read_bytes), "write", AT(write_bytes));
	metrics_path_pair(s, "ibnbd_path_requests_total", "Requests done", "dir", "read", AT(reads),
			  "write", AT(writes));
	metrics_path_pair(s, "ibnbd_path_reconnects_total", "Reconnects", "result", "ok",
			  AT(reconnects), "failed", AT(reconnects_failed));
	metrics_path_one(s, "ibnbd_path_failovers_total", "counter",
			 "Requests that moved to another path", AT(failovers), 1);
	metrics_path_one(s, "ibnbd_path_inflight", "gauge", "Requests under way", AT(inflight), 1);
	metrics_path_one(s, "ibnbd_path_latency_seconds", "gauge",
			 "Round trip of the last heartbeat", AT(latency), 1e-9);
}

/* Lines of "NAME LET_IN REFUSED". */
static void metrics_keys(const char *text, const char *name, const char *help, bool refused)
{
	char key[IBTRS_KEY_NAME_LEN];
	unsigned int n[2];
	int len;

	metrics_head(name, "counter", help);
	for (; text && sscanf(text, "%63s %u %u\n%n", key, &n[0], &n[1], &len) == 3; text += len) {
		printf("%s{", name);
		metrics_label("key", key, true);
		printf("} %u\n", n[refused]);
	}
}

static void metrics_server(const struct state *s)
{
	char *module __free(free) = sysfs_path("module/ibtrs_server/parameters"),
	     *path __free(free) = sysfs_path("module/ibtrs_server/parameters/auth_keys"),
	     *keys __free(free) = sysfs_text(path),
	     *failures __free(free) = sysfs_attr(module, "auth_failures");

	metrics_head("ibnbd_exports_open", "gauge", "Exports that clients have open on this host");
	printf("ibnbd_exports_open %zu\n", s->nr_exports);
	metrics_keys(keys, "ibnbd_server_key_let_in_total", "Paths let in by the key", false);
	metrics_keys(keys, "ibnbd_server_key_refused_total",
		     "Attempts refused that had the key, or said so", true);
	if (failures) {
		metrics_head("ibnbd_server_auth_failures_total", "counter",
			     "Connections refused for a missing key, a wrong key or a wrong proof");
		printf("ibnbd_server_auth_failures_total %s\n", failures);
	}
}

int cmd_metrics_run(struct cmd_args *a)
{
	char *module __free(free) = sysfs_path("module/ibnbd_client"),
	     *version __free(free) = sysfs_attr(module, "version");
	struct maps *m __free(maps_free) = maps_load(VALUE(a, file));
	struct state *s __free(state_free) = state_read();
	size_t i, configured = 0, active = 0;

	metrics_head("ibnbd_build_info", "gauge", "Versions of the driver and of this command");
	printf("ibnbd_build_info{");
	metrics_label("driver", version, false);
	metrics_label("tool", IBNBD_VERSION, true);
	printf("} 1\n");
	metrics_devs(s);
	metrics_paths(s);
	for (i = 0; i < m->nr; i++) {
		configured += !m->entries[i].bad;
		active += !m->entries[i].bad && state_dev_of(s, m->entries[i].map.sessname,
							     m->entries[i].map.device_path);
	}
	metrics_head("ibnbd_maps_configured", "gauge", "Usable lines of maps.conf");
	printf("ibnbd_maps_configured %zu\n", configured);
	metrics_head("ibnbd_maps_active", "gauge", "Lines of maps.conf whose device is mapped");
	printf("ibnbd_maps_active %zu\n", active);
	metrics_server(s);
	return SAY_DONE;
}
