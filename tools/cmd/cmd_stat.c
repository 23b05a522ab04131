// SPDX-License-Identifier: GPL-2.0-only
/*
 * stat: traffic. Without -i it prints sums. With -i it prints a report for each interval, of what
 * was added since the last report; the first report is the sum since the beginning, as with iostat.
 * Numbers of devices come from the block layer, numbers of paths from the transport: their bytes
 * differ by what failed and was sent again.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tools/cmd/cmd.h"
#include "tools/out/escape.h"
#include "tools/out/table.h"

static volatile sig_atomic_t stat_end;

static void stat_stop(int sig)
{
	stat_end = sig;
}

static bool stat_wanted(const struct cmd_args *a, const char *session)
{
	size_t i;

	for (i = 0; i < a->nr_words; i++)
		if (session && escape_means(a->words[i], session))
			return true;
	return !a->nr_words;
}

/*
 * The growth since @before. If the counter went back (a reset, or a new object of that name), all
 * of @now was added. 0 when @now is unknown.
 */
static int64_t stat_since(int64_t now, int64_t before)
{
	if (now == SYSFS_UNKNOWN)
		return 0;
	if (before == SYSFS_UNKNOWN || before > now)
		return now;
	return now - before;
}

static const struct state_dev *stat_dev_before(const struct state *old, const struct state_dev *d)
{
	size_t i;

	for (i = 0; old && i < old->nr_devs; i++)
		if (!strcmp(old->devs[i].kname, d->kname))
			return &old->devs[i];
	return NULL;
}

static const struct state_path *stat_path_before(struct state *old, const struct state_path *p)
{
	struct state_session *s = old ? state_session(old, p->session) : NULL;
	size_t i;

	for (i = 0; s && i < (size_t)s->nr_paths; i++)
		if (!strcmp(s->paths[i].name, p->name))
			return &s->paths[i];
	return NULL;
}

struct stat_line {
	int64_t reads, read_bytes, writes, write_bytes, read_ms, write_ms;
};

static struct stat_line stat_dev(const struct state_dev *d, const struct state_dev *b)
{
	struct stat_line l = { 0 };

	l.reads = stat_since(d->reads, b ? b->reads : SYSFS_UNKNOWN);
	l.read_bytes = stat_since(d->read_bytes, b ? b->read_bytes : SYSFS_UNKNOWN);
	l.writes = stat_since(d->writes, b ? b->writes : SYSFS_UNKNOWN);
	l.write_bytes = stat_since(d->write_bytes, b ? b->write_bytes : SYSFS_UNKNOWN);
	l.read_ms = stat_since(d->read_ms, b ? b->read_ms : SYSFS_UNKNOWN);
	l.write_ms = stat_since(d->write_ms, b ? b->write_ms : SYSFS_UNKNOWN);
	return l;
}

static struct stat_line stat_path(const struct state_path *p, const struct state_path *b)
{
	struct stat_line l = { 0 };

	l.reads = stat_since(p->reads, b ? b->reads : SYSFS_UNKNOWN);
	l.read_bytes = stat_since(p->read_bytes, b ? b->read_bytes : SYSFS_UNKNOWN);
	l.writes = stat_since(p->writes, b ? b->writes : SYSFS_UNKNOWN);
	l.write_bytes = stat_since(p->write_bytes, b ? b->write_bytes : SYSFS_UNKNOWN);
	return l;
}

static void stat_name(const char *name)
{
	char *text __free(free) = escape_text(ESCAPE_LINE, name);
	int columns = escape_columns(text);

	printf("%s%*s", text, columns < 34 ? 34 - columns : 0, "");
}

/* @seconds 0: sums. */
static void stat_numbers(const struct stat_line *l, double seconds, bool bytes)
{
	double per = seconds > 0 ? seconds : 1;
	char *r __free(free) = table_size((int64_t)((double)l->read_bytes / per), bytes),
	     *w __free(free) = table_size((int64_t)((double)l->write_bytes / per), bytes);

	printf(" %10.0f %10s %10.0f %10s", (double)l->reads / per, r, (double)l->writes / per, w);
}

static void stat_latency(int64_t ms, int64_t ops)
{
	if (ops)
		printf(" %8.2f", (double)ms / (double)ops);
	else
		printf(" %8s", "-");
}

static void stat_count(int64_t n)
{
	if (n == SYSFS_UNKNOWN)
		printf(" %8s", "-");
	else
		printf(" %8lld", (long long)n);
}

/* Bytes that no flush has covered: the present value, also in the report of an interval. */
static void stat_unflushed(const struct state_dev *d, bool bytes)
{
	char *text __free(free) = table_size(d->unflushed_bytes, bytes);

	printf(" %9s", text);
}

static void stat_text(const struct cmd_args *a, const struct state *s, struct state *old,
		      double seconds)
{
	const char *rd = seconds > 0 ? "r/s" : "reads", *rb = seconds > 0 ? "rB/s" : "read";
	const char *wr = seconds > 0 ? "w/s" : "writes", *wb = seconds > 0 ? "wB/s" : "written";
	bool head = !ARG(a, noheadings);
	size_t i, j;

	if (head && s->nr_devs)
		printf("%-34s %10s %10s %10s %10s %8s %8s %8s %9s\n", "device", rd, rb, wr, wb,
		       "r_ms", "w_ms", "inflight", "unflushed");
	for (i = 0; i < s->nr_devs; i++) {
		const struct state_dev *d = &s->devs[i];
		struct stat_line l = stat_dev(d, stat_dev_before(old, d));
		char *name __free(free) = say_fmt("%s%s%s", d->kname, d->name ? " " : "",
						  d->name ? d->name : "");

		if (stat_wanted(a, d->session)) {
			stat_name(name);
			stat_numbers(&l, seconds, ARG(a, bytes));
			stat_latency(l.read_ms, l.reads);
			stat_latency(l.write_ms, l.writes);
			stat_count(d->inflight);
			stat_unflushed(d, ARG(a, bytes));
			putchar('\n');
		}
	}
	if (head && s->nr_sessions)
		printf("%-34s %10s %10s %10s %10s %8s %8s %8s %8s\n", "path", rd, rb, wr, wb,
		       "inflight", "failover", "reconn", "failed");
	for (i = 0; i < s->nr_sessions; i++) {
		if (!stat_wanted(a, s->sessions[i].name))
			continue;
		for (j = 0; j < (size_t)s->sessions[i].nr_paths; j++) {
			const struct state_path *p = &s->sessions[i].paths[j];
			struct stat_line l = stat_path(p, stat_path_before(old, p));
			char *name __free(free) = say_fmt("%s %s", p->session, p->name);

			stat_name(name);
			stat_numbers(&l, seconds, ARG(a, bytes));
			stat_count(p->inflight);
			stat_count(p->failovers);
			stat_count(p->reconnects);
			stat_count(p->reconnects_failed);
			puts(p->marginal ? "  marginal" : "");
		}
	}
}

static void stat_json_line(struct json *j, const struct stat_line *l)
{
	json_num(j, "reads", l->reads);
	json_num(j, "read_bytes", l->read_bytes);
	json_num(j, "writes", l->writes);
	json_num(j, "write_bytes", l->write_bytes);
}

static void stat_json(const struct cmd_args *a, const struct state *s, struct state *old,
		      double seconds, bool line)
{
	struct json j;
	size_t i, k;

	json_document(&j, stdout, line);
	json_real(&j, "interval_seconds", seconds);
	json_array(&j, "devices");
	for (i = 0; i < s->nr_devs; i++) {
		const struct state_dev *d = &s->devs[i];
		struct stat_line l = stat_dev(d, stat_dev_before(old, d));

		if (!stat_wanted(a, d->session))
			continue;
		json_object(&j, NULL);
		json_text(&j, "kname", d->kname);
		json_text(&j, "name", d->name);
		json_text(&j, "session", d->session);
		stat_json_line(&j, &l);
		json_num(&j, "read_ms", l.read_ms);
		json_num(&j, "write_ms", l.write_ms);
		json_num(&j, "inflight", d->inflight);
		json_num(&j, "unflushed_bytes", d->unflushed_bytes);
		json_end(&j);
	}
	json_end(&j);
	json_array(&j, "paths");
	for (i = 0; i < s->nr_sessions; i++) {
		for (k = 0;
		     k < (size_t)s->sessions[i].nr_paths && stat_wanted(a, s->sessions[i].name);
		     k++) {
			const struct state_path *p = &s->sessions[i].paths[k];
			struct stat_line l = stat_path(p, stat_path_before(old, p));

			json_object(&j, NULL);
			json_text(&j, "session", p->session);
			json_text(&j, "name", p->name);
			stat_json_line(&j, &l);
			json_num(&j, "inflight", p->inflight);
			json_num(&j, "failovers", p->failovers);
			json_num(&j, "reconnects", p->reconnects);
			json_num(&j, "reconnects_failed", p->reconnects_failed);
			json_bool(&j, "marginal", p->marginal);
			json_end(&j);
		}
	}
	json_end(&j);
	json_end(&j);
}

static double stat_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int stat_number(const char *option, const char *text, double least, double *out)
{
	char *end;

	if (!text)
		return SAY_DONE;
	*out = strtod(text, &end);
	if (end != text && !*end && *out >= least && *out <= 1e9)
		return SAY_DONE;
	return say_error(SAY_USAGE, "stat: --%s %s: a number of at least %g is expected", option,
			 text, least);
}

int cmd_stat_run(struct cmd_args *a)
{
	double interval = 0, count = 0, then = 0, now, n;
	struct sigaction act = { .sa_handler = stat_stop };
	struct state *s, *old = NULL;
	size_t i;
	int rc;

	rc = stat_number("interval", VALUE(a, interval), 0.05, &interval);
	if (!rc)
		rc = stat_number("count", VALUE(a, count), 1, &count);
	if (rc)
		return rc;
	if (VALUE(a, interval)) {
		sigaction(SIGINT, &act, NULL);
		sigaction(SIGTERM, &act, NULL);
	}
	for (n = 0; !stat_end; n++) {
		struct timespec t = { (time_t)interval,
				      (long)((interval - (double)(time_t)interval) * 1e9) };

		s = state_read();
		now = stat_now();
		for (i = 0; !n && i < a->nr_words; i++)
			if (!state_session_said(s, a->words[i]))
				rc = say_error(SAY_NOTHING, "stat: %s: no such session",
					       a->words[i]);
		if (n && !ARG(a, json))
			putchar('\n');
		if (ARG(a, json))
			stat_json(a, s, old, n ? now - then : 0, VALUE(a, interval) != NULL);
		else
			stat_text(a, s, old, n ? now - then : 0);
		fflush(stdout);
		state_free(old);
		old = s;
		then = now;
		if (!VALUE(a, interval) || rc || n + 1 == count || ferror(stdout) ||
		    (nanosleep(&t, NULL) && stat_end))
			break;
	}
	state_free(old);
	return rc;
}
