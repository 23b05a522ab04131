// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-ping: is a server of disks there, by which transports, how long does each step take, and
 * which disks may this host open. Nothing is mapped, and nothing is written: a disk is opened
 * read-only and closed again.
 *
 * Each path is tried by a session of its own, so that a path which works hides none that does not.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <ibtrs/version.h>
#include "ibnbd/proto/msg.h"
#include "ibnbd/user/libibnbd.h"
#include "tools/host/sysfs.h"
#include "tools/out/escape.h"
#include "tools/out/json.h"
#include "tools/out/say.h"

#define PING_PATHS	64u
#define PING_DISKS	64u
#define PING_CALL_MS	10000

struct ping_path {
	const char *asked;		/* what the user wrote: of a host there are several */
	char *path;
	bool up;
	char why[IBTRS_WHY_LEN];	/* why it is not up, or has no disks */
	struct ibtrs_path_info info;
	struct ibtrs_clt_info session;
	u8 version;			/* of the block protocol; 0: the server has no disks */
	u32 answers;
	u64 min, max, sum;		/* microseconds */
};

struct ping_disk {
	const char *name;
	bool open;
	char why[IBTRS_WHY_LEN];
	struct ibnbd_disk_info info;
};

static struct {
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt_opts session;
	uint8_t key[IBTRS_SECRET_LEN];
	u32 count;
	bool json;
	struct ping_path path[PING_PATHS];
	u32 nr_paths;
	struct ping_disk disk[PING_DISKS];
	u32 nr_disks;
} ping = {
	.session = { .size = sizeof(ping.session), .queues = 1, .q_depth = 1, .max_attempts = 1 },
	.count = 3,
};

static const char usage[] =
	"usage: ibnbd-ping [OPTION]... HOST|PATH...\n"
	"Says whether a server of disks is there, and by which paths. Maps nothing.\n"
	"\n"
	"HOST is a name or an address, which is tried over RDMA and over TCP. PATH is\n"
	"ip:ADDRESS[:PORT] (RDMA), tcp:ADDRESS[:PORT], unix:/PATH or auto:ADDRESS[:PORT].\n"
	"\n"
	"  -d, --device NAME      may this host open that disk? May be repeated\n"
	"  -s, --session NAME     of this client, as the server will see it (HOSTNAME-ping)\n"
	"  -k, --key FILE         32 bytes; the name of the file is that of the key\n"
	"  -c, --count N          messages to each path (3)\n"
	"  -j, --json\n"
	"  -h, --help\n"
	"  -V, --version\n";

static u64 ping_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000 + (u64)t.tv_nsec / 1000;
}

/* ---- options ------------------------------------------------------------ */

static int ping_add(const char *asked, char *path)
{
	if (ping.nr_paths == PING_PATHS)
		return say_error(SAY_USAGE, "at most %u paths", PING_PATHS);
	ping.path[ping.nr_paths++] = (struct ping_path){ .asked = asked, .path = path };
	return 0;
}

/* Each address of the host, over RDMA and over TCP. */
static int ping_host(const char *host)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *all, *a;
	char text[NI_MAXHOST];
	int err = getaddrinfo(host, NULL, &hints, &all), rc = 0;

	if (err)
		return say_error(SAY_NOTHING, "%s: %s", host,
				 err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	for (a = all; a && !rc; a = a->ai_next) {
		const char *form = a->ai_family == AF_INET6 ? "%s[%s]" : "%s%s";

		if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST))
			continue;
		rc = ping_add(host, say_fmt(form, "ip:", text));
		rc = rc ?: ping_add(host, say_fmt(form, "tcp:", text));
	}
	freeaddrinfo(all);
	return rc;
}

static int ping_target(const char *word)
{
	static const char *const kinds[] = { "ip:", "tcp:", "unix:", "auto:", "gid:" };
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(word, kinds[i], strlen(kinds[i])))
			return ping_add(word, say_dup(word));
	return ping_host(word);
}

static int ping_key(const char *file)
{
	char why[IBTRS_WHY_LEN];
	int err = ibtrs_key_read(file, ping.key, &ping.session.key_name, why);

	ping.session.key = ping.key;
	return err ? say_error(err == -EINVAL ? SAY_USAGE : SAY_FAILED, "%s: %s", file, why) : 0;
}

static int ping_number(const char *s, u32 *n)
{
	char *end;
	unsigned long v = strtoul(s, &end, 10);

	*n = (u32)v;
	return *s >= '0' && *s <= '9' && !*end && v <= 1000000 ? 0 :
	       say_error(SAY_USAGE, "--count %s: it is a number up to 1000000", s);
}

/* Return: -1: go on; else the exit code. */
static int ping_options(int argc, char **argv)
{
	static const struct option all[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "session", required_argument, NULL, 's' },
		{ "key", required_argument, NULL, 'k' },
		{ "count", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int opt, rc = 0;

	while (!rc && (opt = getopt_long(argc, argv, "d:s:k:c:jhV", all, NULL)) != -1) {
		switch (opt) {
		case 'd':
			if (ping.nr_disks == PING_DISKS)
				return say_error(SAY_USAGE, "at most %u disks", PING_DISKS);
			ping.disk[ping.nr_disks++].name = optarg;
			break;
		case 's':
			ping.session.name = optarg;
			break;
		case 'k':
			rc = ping_key(optarg);
			break;
		case 'c':
			rc = ping_number(optarg, &ping.count);
			break;
		case 'j':
			ping.json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'V':
			puts("ibnbd-ping " IBNBD_VERSION);
			return 0;
		default:
			fputs(usage, stderr);
			return SAY_USAGE;
		}
	}
	if (!rc && optind == argc) {
		fputs(usage, stderr);
		return say_error(SAY_USAGE, "name a host or a path; see ibnbd-ping(1)");
	}
	for (; !rc && optind < argc; optind++)
		rc = ping_target(argv[optind]);
	return rc ?: -1;
}

/* The name that nothing of this host but ping has. */
static char *ping_name(void)
{
	char host[65] = "";
	size_t n;

	if (gethostname(host, sizeof(host) - 1) || !*host)
		strcpy(host, "host");
	n = strcspn(host, "./");
	return say_fmt("%.*s-ping", (int)n, host);
}

/* ---- paths -------------------------------------------------------------- */

/* One message that any server of disks answers. Return: 0 or a negative errno. */
static int ping_hello(struct ping_path *p, struct ibtrs_clt *clt)
{
	const struct ibnbd_sess_info offer = { .version = IBNBD_PROTO_MAJOR };
	struct ibnbd_wire_sess_info req, rsp;
	const char *why = "it is another kind of server";
	struct ibnbd_sess_info info;
	u64 begin = ping_us(), us;
	int err;

	ibnbd_msg_sess_info_encode(&req, IBNBD_MSG_SESS_INFO, &offer);
	err = ibtrs_clt_call(clt, &req, sizeof(req), &rsp, sizeof(rsp), PING_CALL_MS);
	us = ping_us() - begin;
	if (err == -ETIMEDOUT || err == -ENOTCONN || err == -ECONNRESET) {
		snprintf(p->why, sizeof(p->why), "the path came up, and then was lost: %s",
			 strerror(-err));
		p->up = false;
		return err;
	}
	p->min = !p->answers || us < p->min ? us : p->min;
	p->max = us > p->max ? us : p->max;
	p->sum += us;
	p->answers++;
	err = err ?: ibnbd_msg_sess_info_rsp_decode(&rsp, sizeof(rsp), 0, &info, &why);
	if (!err)
		p->version = info.version;
	else
		snprintf(p->why, sizeof(p->why), "the server has no disks: %s", why);
	return 0;
}

static void ping_try(struct ping_path *p)
{
	const char *const path[] = { p->path };
	struct ibtrs_clt *clt;
	u32 i;

	p->info.size = sizeof(p->info);
	p->session.size = sizeof(p->session);
	if (ibtrs_clt_open(ping.ctx, path, 1, &ping.session, &clt, p->why))
		return;
	p->up = true;
	ibtrs_clt_info(clt, &p->session);
	ibtrs_clt_path_info(clt, 0, &p->info);
	for (i = 0; i < ping.count && !ping_hello(p, clt); i++)
		;
	ibtrs_clt_close(clt);
}

/* ---- disks -------------------------------------------------------------- */

static void ping_disk(struct ping_disk *d)
{
	const struct ibnbd_disk_opts o = {
		.size = sizeof(o), .access = IBNBD_DISK_RO, .hold_ms = IBNBD_HOLD_NONE,
	};
	const char *paths[PING_PATHS];
	struct ibnbd_disk *disk;
	u32 i, nr = 0;

	for (i = 0; i < ping.nr_paths; i++)
		if (ping.path[i].up)
			paths[nr++] = ping.path[i].path;
	if (!nr) {
		snprintf(d->why, sizeof(d->why), "no path is up");
		return;
	}
	d->info.size = sizeof(d->info);
	if (ibnbd_disk_open(ping.ctx, d->name, paths, nr, &ping.session, &o, &disk, d->why))
		return;
	d->open = true;
	ibnbd_disk_info(disk, &d->info);
	ibnbd_disk_close(disk);
}

/* ---- what it says ------------------------------------------------------- */

/* The library's words begin with the path. */
static const char *ping_words(const struct ping_path *p)
{
	size_t n = strlen(p->path);

	return !strncmp(p->why, p->path, n) && !strncmp(p->why + n, ": ", 2) ? p->why + n + 2 :
									       p->why;
}

static u32 ping_took(const struct ping_path *p)
{
	u32 us = 0, i;

	for (i = 0; i < IBTRS_PHASES; i++)
		us += p->info.phase_us[i];
	return us;
}

static void ping_print_path(const struct ping_path *p)
{
	char *phases = say_dup(""), *old;
	int i;

	if (!p->up) {
		say_print("%s: %s", p->path, ping_words(p));
		free(phases);
		return;
	}
	for (i = 0; i < IBTRS_PHASES; i++) {
		if (p->info.phase_us[i] < 50)
			continue;
		old = phases;
		phases = say_fmt("%s%s%s %.1f", old, *old ? ", " : "", ibtrs_phase_name(i),
				 p->info.phase_us[i] / 1e3);
		free(old);
	}
	say_print("%s: %s, up in %.1f ms (%s)", p->path, p->info.kind, ping_took(p) / 1e3, phases);
	if (p->answers)
		say_print("    %u answers in %llu to %llu us, %llu on average", p->answers,
			  (unsigned long long)p->min, (unsigned long long)p->max,
			  (unsigned long long)(p->sum / p->answers));
	if (p->version)
		say_print("    block protocol %u, %u requests of up to %u KiB at a time",
			  p->version, p->session.queue_depth, p->session.max_io_size / 1024);
	else if (*p->why)
		say_print("    %s", p->why);
	free(phases);
}

static void ping_print_disk(const struct ping_disk *d)
{
	if (d->open)
		say_print("%s: %llu bytes in blocks of %u%s", d->name,
			  (unsigned long long)d->info.bytes, d->info.block_size,
			  d->info.cache ? ", with a write cache" : "");
	else
		say_print("%s: %s", d->name, d->why);
}

static void ping_json_num(struct json *j, const char *name, bool known, u64 n)
{
	json_num(j, name, known ? (int64_t)n : SYSFS_UNKNOWN);
}

static void ping_json(void)
{
	struct json j = { .f = stdout };
	u32 i, k;

	json_object(&j, NULL);
	json_text(&j, "schema", "ibnbd-ping/1");
	json_array(&j, "paths");
	for (i = 0; i < ping.nr_paths; i++) {
		const struct ping_path *p = &ping.path[i];

		json_object(&j, NULL);
		json_text(&j, "target", p->asked);
		json_text(&j, "path", p->path);
		json_bool(&j, "up", p->up);
		json_text(&j, "transport", p->up ? p->info.kind : NULL);
		json_text(&j, "why", *p->why ? ping_words(p) : NULL);
		ping_json_num(&j, "protocol", p->version, p->version);
		ping_json_num(&j, "queue_depth", p->up, p->session.queue_depth);
		ping_json_num(&j, "max_io_bytes", p->up, p->session.max_io_size);
		json_object(&j, "phases_us");
		for (k = 0; k < IBTRS_PHASES; k++)
			json_num(&j, ibtrs_phase_name(k), p->info.phase_us[k]);
		json_end(&j);
		json_num(&j, "answers", p->answers);
		ping_json_num(&j, "min_us", p->answers, p->min);
		ping_json_num(&j, "avg_us", p->answers, p->sum / (p->answers ?: 1));
		ping_json_num(&j, "max_us", p->answers, p->max);
		json_end(&j);
	}
	json_end(&j);
	json_array(&j, "devices");
	for (i = 0; i < ping.nr_disks; i++) {
		const struct ping_disk *d = &ping.disk[i];

		json_object(&j, NULL);
		json_text(&j, "device", d->name);
		json_bool(&j, "open", d->open);
		json_text(&j, "why", d->open ? NULL : d->why);
		ping_json_num(&j, "bytes", d->open, d->info.bytes);
		ping_json_num(&j, "block_size", d->open, d->info.block_size);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
}

/* Of a host one path is enough, of paths that were named each counts. */
static bool ping_reached(const char *asked)
{
	u32 i;

	for (i = 0; i < ping.nr_paths; i++)
		if (!strcmp(ping.path[i].asked, asked) && ping.path[i].up && ping.path[i].version)
			return true;
	return false;
}

static int ping_result(void)
{
	u32 i, good = 0;

	for (i = 0; i < ping.nr_paths; i++)
		good += ping_reached(ping.path[i].asked);
	if (!good)
		return SAY_UNREACHABLE;
	if (good < ping.nr_paths)
		return SAY_PARTIAL;
	for (i = 0; i < ping.nr_disks; i++)
		if (!ping.disk[i].open)
			return SAY_FAILED;
	return SAY_DONE;
}

int main(int argc, char **argv)
{
	const struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };
	int rc = ping_options(argc, argv);
	u32 i;

	if (rc >= 0)
		return rc;
	escape_locale();
	if (!ping.session.name)
		ping.session.name = ping_name();
	if (ibtrs_ctx_new(&ping.ctx, &co))
		return say_error(SAY_FAILED, "no memory, or no thread");
	for (i = 0; i < ping.nr_paths; i++) {
		ping_try(&ping.path[i]);
		if (!ping.json)
			ping_print_path(&ping.path[i]);
	}
	for (i = 0; i < ping.nr_disks; i++) {
		ping_disk(&ping.disk[i]);
		if (!ping.json)
			ping_print_disk(&ping.disk[i]);
	}
	if (ping.json)
		ping_json();
	ibtrs_ctx_free(ping.ctx);
	return ping_result();
}
