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
 * A number with its labels: pairs of a key and a value, up to a key that is NULL. The value of a
 * label must be UTF-8, else the scraper refuses the whole output. Any other byte is printed as
 * \xNN, and so is a newline. Backslashes and quotes are then escaped once more, as the format
 * requires.
 */
static void metrics_line(const char *name, double n, ...)
{
	const char *key, *s;
	char before = '{';
	va_list ap;

	printf("%s", name);
	va_start(ap, n);
	while ((key = va_arg(ap, const char *))) {
		const char *value = va_arg(ap, const char *);
		char *text __free(free) = escape_text(ESCAPE_TEXT, value ? value : "");

		printf("%c%s=\"", before, key);
		for (s = text; *s; s++)
			printf(*s == '\\' || *s == '"' ? "\\%c" : "%c", *s);
		putchar('"');
		before = ',';
	}
	va_end(ap);
	printf("%s %.15g\n", before == ',' ? "}" : "", n);
}

static void metrics_dev(const char *name, const struct state_dev *d, const char *key,
			const char *value, double n)
{
	metrics_line(name, n, "device", d->kname, "name", d->name, "session", d->session,
		     "export", d->device_path, key, value, NULL);
}

static void metrics_path(const char *name, const struct state_path *p, const char *key,
			 const char *value, double n)
{
	metrics_line(name, n, "session", p->session, "path", p->name, "hca", p->hca_name, key,
		     value, NULL);
}

/*
 * A number of each object, which is at @at in its struct. With @label: @first is the value of this
 * label, and the number at @second_at has the value @second. A number that the driver does not show
 * is left out.
 */
struct metrics_row {
	const char *name, *type, *help;
	size_t at;
	double factor;
	const char *label, *first, *second;
	size_t second_at;
};

#define DEV(field)	offsetof(struct state_dev, field)
#define PATH(field)	offsetof(struct state_path, field)

static const struct metrics_row metrics_dev_rows[] = {
	{ "ibnbd_device_size_bytes", "gauge", "Size of the device", DEV(size), 1 },
	{ "ibnbd_device_unflushed_bytes", "gauge", "Bytes written that no flush has covered",
	  DEV(unflushed_bytes), 1 },
	{ "ibnbd_device_replays_total", "counter", "Times that what was kept was sent again",
	  DEV(replays), 1 },
	{ "ibnbd_device_replayed_bytes_total", "counter", "Bytes that were sent again",
	  DEV(replayed_bytes), 1 },
	{ "ibnbd_device_losses_total", "counter",
	  "Times that an administrator took the loss of such bytes", DEV(losses), 1 },
	{ "ibnbd_device_other_writers_total", "counter",
	  "Times that another client had written when the device was opened again",
	  DEV(other_writers), 1 },
	{ "ibnbd_device_oldest_request_seconds", "gauge",
	  "Time that the oldest request has waited for its answer", DEV(oldest_ms), 1e-3 },
}, metrics_path_rows[] = {
	{ "ibnbd_path_up", "gauge", "1 when the path is connected", PATH(up), 1 },
	{ "ibnbd_path_marginal", "gauge",
	  "1 when the path has failed so often lately that it is used less than the others",
	  PATH(marginal), 1 },
	{ "ibnbd_path_bytes_total", "counter", "Bytes read and written", PATH(read_bytes), 1,
	  "dir", "read", "write", PATH(write_bytes) },
	{ "ibnbd_path_requests_total", "counter", "Requests done", PATH(reads), 1,
	  "dir", "read", "write", PATH(writes) },
	{ "ibnbd_path_reconnects_total", "counter", "Reconnects", PATH(reconnects), 1,
	  "result", "ok", "failed", PATH(reconnects_failed) },
	{ "ibnbd_path_failovers_total", "counter", "Requests that moved to another path",
	  PATH(failovers), 1 },
	{ "ibnbd_path_inflight", "gauge", "Requests under way", PATH(inflight), 1 },
	{ "ibnbd_path_latency_seconds", "gauge", "Round trip of the last heartbeat",
	  PATH(latency), 1e-9 },
};

static int64_t metrics_number(const void *object, size_t at)
{
	return *(const int64_t *)((const char *)object + at);
}

static void metrics_devs(const struct state *s)
{
	static const char *const states[] = {
		"init", "open", "held", "failfast", "replaying", "failed", "fenced", "unmapped"
	};
	const struct metrics_row *r;

	metrics_head("ibnbd_device_state", "gauge", "1 for the state that the device is in");
	for (size_t i = 0; i < s->nr_devs; i++)
		for (size_t j = 0; j < ARRAY_SIZE(states); j++)
			metrics_dev("ibnbd_device_state", &s->devs[i], "state", states[j],
				    s->devs[i].state_detail &&
					    !strncmp(s->devs[i].state_detail, states[j],
						     strlen(states[j])));
	for (r = metrics_dev_rows; r < metrics_dev_rows + ARRAY_SIZE(metrics_dev_rows); r++) {
		metrics_head(r->name, r->type, r->help);
		for (size_t i = 0; i < s->nr_devs; i++) {
			int64_t n = metrics_number(&s->devs[i], r->at);

			if (n != SYSFS_UNKNOWN)
				metrics_dev(r->name, &s->devs[i], NULL, NULL,
					    (double)n * r->factor);
		}
	}
}

static void metrics_path_row(const struct metrics_row *r, const struct state_path *p)
{
	int64_t n = metrics_number(p, r->at),
		second = r->second ? metrics_number(p, r->second_at) : SYSFS_UNKNOWN;

	if (n != SYSFS_UNKNOWN)
		metrics_path(r->name, p, r->label, r->first, (double)n * r->factor);
	if (second != SYSFS_UNKNOWN)
		metrics_path(r->name, p, r->label, r->second, (double)second * r->factor);
}

static void metrics_paths(const struct state *s)
{
	const struct metrics_row *r;

	for (r = metrics_path_rows; r < metrics_path_rows + ARRAY_SIZE(metrics_path_rows); r++) {
		metrics_head(r->name, r->type, r->help);
		for (size_t i = 0; i < s->nr_sessions; i++)
			for (size_t j = 0; j < (size_t)s->sessions[i].nr_paths; j++)
				metrics_path_row(r, &s->sessions[i].paths[j]);
	}
}

/* Lines of "NAME LET_IN REFUSED". */
static void metrics_keys(const char *text, const char *name, const char *help, bool refused)
{
	char key[IBTRS_KEY_NAME_LEN];
	unsigned int n[2];
	int len;

	metrics_head(name, "counter", help);
	for (; text && sscanf(text, "%63s %u %u\n%n", key, &n[0], &n[1], &len) == 3; text += len)
		metrics_line(name, n[refused], "key", key, NULL);
}

static void metrics_server(const struct state *s)
{
	char *module __free(free) = sysfs_path("module/ibtrs_server/parameters"),
	     *path __free(free) = sysfs_path("module/ibtrs_server/parameters/auth_keys"),
	     *keys __free(free) = sysfs_text(path),
	     *failures __free(free) = sysfs_attr(module, "auth_failures");

	metrics_head("ibnbd_exports_open", "gauge", "Exports that clients have open on this host");
	metrics_line("ibnbd_exports_open", (double)s->nr_exports, NULL);
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
	metrics_line("ibnbd_build_info", 1, "driver", version, "tool", IBNBD_VERSION, NULL);
	metrics_devs(s);
	metrics_paths(s);
	for (i = 0; i < m->nr; i++) {
		configured += !m->entries[i].bad;
		active += !m->entries[i].bad && state_dev_of(s, m->entries[i].map.sessname,
							     m->entries[i].map.device_path);
	}
	metrics_head("ibnbd_maps_configured", "gauge", "Usable lines of maps.conf");
	metrics_line("ibnbd_maps_configured", (double)configured, NULL);
	metrics_head("ibnbd_maps_active", "gauge", "Lines of maps.conf whose device is mapped");
	metrics_line("ibnbd_maps_active", (double)active, NULL);
	metrics_server(s);
	return SAY_DONE;
}
