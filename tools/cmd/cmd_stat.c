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
	for (size_t i = 0; i < a->nr_words; i++)
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

struct stat_line {
	int64_t reads, read_bytes, writes, write_bytes, read_ms, write_ms;
};

#define STAT_SINCE(now, then, field) \
	stat_since((now)->field, (then) ? (then)->field : SYSFS_UNKNOWN)
#define STAT_LINE(now, then) \
	.reads = STAT_SINCE(now, then, reads), \
	.read_bytes = STAT_SINCE(now, then, read_bytes), \
	.writes = STAT_SINCE(now, then, writes), \
	.write_bytes = STAT_SINCE(now, then, write_bytes)

static struct stat_line stat_dev(const struct state_dev *d, const struct state *old)
{
	const struct state_dev *b = old ? state_dev_called(old, d->kname) : NULL;

	return (struct stat_line){ STAT_LINE(d, b), .read_ms = STAT_SINCE(d, b, read_ms),
				   .write_ms = STAT_SINCE(d, b, write_ms) };
}

static struct stat_line stat_path(const struct state_path *p, struct state *old)
{
	const struct state_path *b = old ? state_path_then(old, p) : NULL;

	return (struct stat_line){ STAT_LINE(p, b) };
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

static void stat_text(const struct cmd_args *a, const struct state *s, struct state *old,
		      double seconds)
{
	const char *rd = seconds > 0 ? "r/s" : "reads", *rb = seconds > 0 ? "rB/s" : "read";
	const char *wr = seconds > 0 ? "w/s" : "writes", *wb = seconds > 0 ? "wB/s" : "written";
	bool head = !ARG(a, noheadings);

	if (head && s->nr_devs)
		printf("%-34s %10s %10s %10s %10s %8s %8s %8s %9s\n", "device", rd, rb, wr, wb,
		       "r_ms", "w_ms", "inflight", "unflushed");
	for (size_t i = 0; i < s->nr_devs; i++) {
		const struct state_dev *d = &s->devs[i];
		struct stat_line l = stat_dev(d, old);
		char *name __free(free) = say_fmt("%s%s%s", d->kname, d->name ? " " : "",
						  d->name ? d->name : ""),
		     *unflushed __free(free) = table_size(d->unflushed_bytes, ARG(a, bytes));

		if (!stat_wanted(a, d->session))
			continue;
		stat_name(name);
		stat_numbers(&l, seconds, ARG(a, bytes));
		stat_latency(l.read_ms, l.reads);
		stat_latency(l.write_ms, l.writes);
		stat_count(d->inflight);
		printf(" %9s\n", unflushed);	/* as it is now, also with -i */
	}
	if (head && s->nr_sessions)
		printf("%-34s %10s %10s %10s %10s %8s %8s %8s %8s\n", "path", rd, rb, wr, wb,
		       "inflight", "failover", "reconn", "failed");
	for (size_t i = 0; i < s->nr_sessions; i++) {
		if (!stat_wanted(a, s->sessions[i].name))
			continue;
		for (size_t j = 0; j < (size_t)s->sessions[i].nr_paths; j++) {
			const struct state_path *p = &s->sessions[i].paths[j];
			struct stat_line l = stat_path(p, old);
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

	json_document(&j, stdout, line);
	json_real(&j, "interval_seconds", seconds);
	json_array(&j, "devices");
	for (size_t i = 0; i < s->nr_devs; i++) {
		const struct state_dev *d = &s->devs[i];
		struct stat_line l = stat_dev(d, old);

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
	for (size_t i = 0; i < s->nr_sessions; i++) {
		if (!stat_wanted(a, s->sessions[i].name))
			continue;
		for (size_t k = 0; k < (size_t)s->sessions[i].nr_paths; k++) {
			const struct state_path *p = &s->sessions[i].paths[k];
			struct stat_line l = stat_path(p, old);

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
	json_close(&j);
}

static int stat_interval(const char *text, double *seconds)
{
	char *end;

	if (!text)
		return SAY_DONE;
	*seconds = strtod(text, &end);
	if (end != text && !*end && *seconds >= 0.05 && *seconds <= 1e9)
		return SAY_DONE;
	return say_error(SAY_USAGE, "stat: --interval %s: a number of at least 0.05 is expected",
			 text);
}

int cmd_stat_run(struct cmd_args *a)
{
	double interval = 0, then = 0, now;
	struct sigaction act = { .sa_handler = stat_stop };
	struct state *s, *old = NULL;
	int rc = stat_interval(VALUE(a, interval), &interval);
	long count = 0, n;

	rc = rc ? rc : cmd_count(a, &count);
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
		now = (double)sysfs_now() / 1e6;
		for (size_t i = 0; !n && i < a->nr_words; i++)
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
