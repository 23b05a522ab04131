// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibtrs-peer ping and load: how long a path takes to come up, a message, a request.
 *
 * load has one thread, which sleeps until something has ended: a request's time is from its
 * submission to the poll that handed it back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ibtrs/user/peer/peer.h"
#include "tools/out/json.h"

#define JSON_SCHEMA	"ibtrs-peer/1"

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- latencies ---------------------------------------------------------- */

/*
 * Counts by time in nanoseconds: below 2^6 exactly, above that 32 ranges for each power of two, so
 * that a percentile is at most 3 % too large.
 */
#define TIMES_RANGES	(64 + (64 - 6) * 32)

struct times {
	uint64_t nr, sum, min, max;
	uint64_t range[TIMES_RANGES];
};

static unsigned int times_range(uint64_t ns)
{
	unsigned int shift = ns < 64 ? 0 : 58 - (unsigned int)__builtin_clzll(ns);

	return shift * 32 + (unsigned int)(ns >> shift);
}

static void times_add(struct times *t, uint64_t ns)
{
	t->min = !t->nr || ns < t->min ? ns : t->min;
	t->max = ns > t->max ? ns : t->max;
	t->sum += ns;
	t->nr++;
	t->range[times_range(ns)]++;
}

static double times_mean_us(const struct times *t)
{
	return t->nr ? (double)t->sum / (double)t->nr / 1e3 : 0;
}

/* What @permille of 1000 did not take longer than. */
static double times_us(const struct times *t, uint64_t permille)
{
	uint64_t want = (t->nr * permille + 999) / 1000, seen = 0, most;
	unsigned int i, shift;

	for (i = 0; i < TIMES_RANGES - 1; i++) {
		seen += t->range[i];
		if (seen >= want)
			break;
	}
	shift = i < 64 ? 0 : i / 32 - 1;
	most = (((uint64_t)i - shift * 32 + 1) << shift) - 1;
	return (double)(most < t->max ? most : t->max) / 1e3;
}

static const struct {
	const char *word, *key;
	uint64_t permille;
} percentiles[] = {
	{ "50%", "p50", 500 }, { "90%", "p90", 900 }, { "99%", "p99", 990 },
	{ "99.9%", "p99.9", 999 }, { NULL },
};

static void times_json(struct json *j, const struct times *t)
{
	size_t i;

	json_object(j, "latency_us");
	json_real(j, "min", (double)t->min / 1e3);
	json_real(j, "mean", times_mean_us(t));
	for (i = 0; percentiles[i].word; i++)
		json_real(j, percentiles[i].key, times_us(t, percentiles[i].permille));
	json_real(j, "max", (double)t->max / 1e3);
	json_end(j);
}

/* ---- paths -------------------------------------------------------------- */

/* A path, and how long each step took by which it came up. */
static void path_say(const struct ibtrs_path_info *path)
{
	const char *mark = ": ";
	uint32_t us = 0;
	unsigned int i;

	printf("%s %s %s%s%s", path->path, path->kind, path->state, *path->why ? ": " : "",
	       path->why);
	for (i = 0; i < IBTRS_PHASES; i++)
		us += path->phase_us[i];
	if (!strcmp(path->state, "up")) {
		printf(" in %.1f ms", us / 1e3);
		for (i = 0; i < IBTRS_PHASES; i++)
			if (path->phase_us[i]) {
				printf("%s%s %.1f", mark, ibtrs_phase_name(i),
				       path->phase_us[i] / 1e3);
				mark = ", ";
			}
	}
	putchar('\n');
}

static void path_json(struct json *j, const struct ibtrs_path_info *path)
{
	unsigned int i;

	json_object(j, NULL);
	json_text(j, "path", path->path);
	json_text(j, "transport", path->kind);
	json_text(j, "state", path->state);
	json_text(j, "why", *path->why ? path->why : NULL);
	json_object(j, "phases_us");
	for (i = 0; i < IBTRS_PHASES; i++)
		json_num(j, ibtrs_phase_name(i), path->phase_us[i]);
	json_end(j);
	json_end(j);
}

static void paths_json(struct json *j, struct peer *p)
{
	struct ibtrs_path_info path = { .size = sizeof(path) };
	unsigned int i;

	json_array(j, "paths");
	for (i = 0; !ibtrs_clt_path_info(p->clt, i, &path); i++)
		path_json(j, &path);
	json_end(j);
}

static void session_json(struct json *j, const struct peer *p)
{
	json_object(j, NULL);
	json_text(j, "schema", JSON_SCHEMA);
	json_num(j, "queue_depth", p->info.queue_depth);
	json_num(j, "max_io_bytes", p->info.max_io_size);
}

/* ---- ping --------------------------------------------------------------- */

int ping(struct peer *p, uint64_t nr)
{
	const struct peer_hdr h = { .magic = PEER_MAGIC };
	struct ibtrs_path_info path = { .size = sizeof(path) };
	static struct times times;
	struct json j = { .f = stdout };
	uint64_t begin, ns;
	unsigned int i;
	int err;

	if (!p->json)
		printf("queue_depth %u, max_io_size %u, paths %u of %u\n", p->info.queue_depth,
		       p->info.max_io_size, p->info.paths_up, p->info.paths);
	while (nr--) {
		begin = now_ns();
		/* A server of another kind does not know it: that is an answer, too. */
		err = ibtrs_clt_call(p->clt, &h, sizeof(h), NULL, 0, PEER_CALL_MS);
		ns = now_ns() - begin;
		if (err == -ETIMEDOUT || err == -ENOTCONN || err == -ECONNRESET)
			return fail("ping", err);
		times_add(&times, ns);
		if (!p->json)
			printf("%llu us\n", (unsigned long long)ns / 1000);
	}
	if (p->json) {
		session_json(&j, p);
		json_num(&j, "answers", (int64_t)times.nr);
		times_json(&j, &times);
		paths_json(&j, p);
		json_end(&j);
		return 0;
	}
	printf("%llu answers, min/avg/max %.0f/%.0f/%.0f us\n", (unsigned long long)times.nr,
	       (double)times.min / 1e3, times_mean_us(&times), (double)times.max / 1e3);
	for (i = 0; !ibtrs_clt_path_info(p->clt, i, &path); i++)
		path_say(&path);
	return 0;
}

/* ---- load --------------------------------------------------------------- */

struct flight {
	struct ibtrs_io io;
	struct peer_hdr h;
	uint64_t begin;
};

/* Return: 0 or a negative errno; @ns: how long it was, with the answers of the last ones. */
static int load_run(struct peer *p, struct flight *f, unsigned int depth, uint64_t seconds,
		    struct times *times, uint64_t *ns)
{
	struct ibtrs_io *go[PEER_DEPTH], *done[PEER_DEPTH];
	uint64_t begin = now_ns(), now = begin, end = begin + seconds * 1000000000;
	unsigned int idle = depth, flying = 0;
	int n, i, err = 0;

	for (i = 0; i < (int)depth; i++)
		go[i] = &f[i].io;
	while (idle || flying) {
		if (err || now >= end)
			idle = 0;
		for (i = 0; i < (int)idle; i++)
			((struct flight *)go[i]->user)->begin = now;
		n = idle ? ibtrs_q_submit(p->q, go, idle) : 0;
		if (n < 0)
			return n;
		flying += (unsigned int)n;
		memmove(go, go + n, (idle - (unsigned int)n) * sizeof(*go));
		idle -= (unsigned int)n;
		n = flying ? ibtrs_q_poll(p->q, done, PEER_DEPTH, -1) : 0;
		if (n < 0)
			return n;
		now = now_ns();
		flying -= (unsigned int)n;
		for (i = 0; i < n; i++) {
			err = err ?: done[i]->err;
			times_add(times, now - ((struct flight *)done[i]->user)->begin);
			go[idle++] = done[i];
		}
	}
	*ns = now - begin;
	return err;
}

static void load_say(struct peer *p, const char *word, unsigned int depth, uint32_t size,
		     const struct times *t, double seconds)
{
	double iops = (double)t->nr / seconds;
	struct json j = { .f = stdout };
	size_t i;

	if (p->json) {
		session_json(&j, p);
		json_text(&j, "direction", word);
		json_num(&j, "bytes", size);
		json_num(&j, "depth", depth);
		json_real(&j, "seconds", seconds);
		json_num(&j, "requests", (int64_t)t->nr);
		json_real(&j, "iops", iops);
		times_json(&j, t);
		paths_json(&j, p);
		json_end(&j);
		return;
	}
	printf("%s of %u bytes, %u at a time, %.1f s: %.0f IOPS, %.1f MiB/s\n", word, size, depth,
	       seconds, iops, iops * size / (1 << 20));
	printf("latency in us: min %.1f, avg %.1f", (double)t->min / 1e3, times_mean_us(t));
	for (i = 0; percentiles[i].word; i++)
		printf(", %s %.1f", percentiles[i].word, times_us(t, percentiles[i].permille));
	printf(", max %.1f\n", (double)t->max / 1e3);
}

static int load_blocks(struct peer *p, const char *word, uint64_t seconds, unsigned int depth,
		       uint32_t size, struct flight *f, uint8_t *data)
{
	enum ibtrs_io_dir dir = strcmp(word, "read") ? IBTRS_IO_WRITE : IBTRS_IO_READ;
	static struct times times;
	unsigned int i;
	uint64_t ns;
	int err;

	if (in_place(p, data, (size_t)depth * size, dir))
		return 1;
	for (i = 0; i < depth; i++) {
		f[i].h = (struct peer_hdr){ .magic = PEER_MAGIC, .offset = (uint64_t)i * size };
		f[i].io = (struct ibtrs_io){
			.dir = dir, .hdr = &f[i].h, .hdr_len = sizeof(f[i].h), .user = &f[i],
			.data = data + (size_t)i * size, .len = size,
		};
	}
	err = load_run(p, f, depth, seconds, &times, &ns);
	if (err)
		return fail("load", err);
	load_say(p, word, depth, size, &times, (double)ns / 1e9);
	ibtrs_clt_mem_del(p->clt, data);
	return 0;
}

int load(struct peer *p, const char *word, uint64_t seconds, uint64_t depth, uint64_t size)
{
	struct flight *f;
	uint8_t *data;
	int rc;

	if (!size || size > p->info.max_io_size)
		return fail("SIZE, 1 to max_io_size", -EINVAL);
	f = calloc(depth, sizeof(*f));
	data = calloc(depth, size);
	if (f && data)
		rc = load_blocks(p, word, seconds, (unsigned int)depth, (uint32_t)size, f, data);
	else
		rc = fail("load", -ENOMEM);
	free(data);
	free(f);
	return rc;
}
