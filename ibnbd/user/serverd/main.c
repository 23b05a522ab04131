// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program: options, the loop, signals. One epoll set has what libibtrs waits for, the ring, the
 * workers, the sockets of NBD servers and the signals.
 */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <ibtrs/version.h>
#include "ibnbd/user/serverd/serverd.h"
#include "tools/host/notify.h"
#include "tools/out/escape.h"
#include "tools/out/say.h"

#define MAIN_OPS		64
#define MAIN_LISTEN		16
/* Those of the module, without options: a client may come from there, with a disk open. */
#define MAIN_DEPTH		512
#define MAIN_IO_SIZE		131072
#define MAIN_NAME_KEEP		120
#define MAIN_LOG_LINES		10
#define MAIN_LOG_MS		5000

static const char usage[] =
	"usage: ibnbd-serverd [OPTION]...\n"
	"Exports the files, block devices and NBD servers of server.conf, in user space.\n"
	"\n"
	"  -l, --listen AT        ip:ADDRESS[:PORT] (RDMA), tcp:ADDRESS[:PORT] or unix:/PATH; may be\n"
	"                         repeated; without it ip::: with port_nr of server.conf\n"
	"  -c, --config FILE      in place of /etc/ibnbd/server.conf\n"
	"  -p, --policy FILE      in place of /etc/ibnbd/policy.conf\n"
	"      --queue-depth N    requests of a session at a time (512)\n"
	"      --max-memory MIB   memory for requests of all clients (4224); a path has 66\n"
	"      --max-sessions N   sessions of all clients (256)\n"
	"      --max-memory-per-peer MIB, --max-memory-per-key MIB, --max-sessions-per-peer N,\n"
	"      --max-sessions-per-key N, --max-paths-half-open N, --max-paths-half-open-per-peer N\n"
	"                         of one client or key, and in the handshake: ibnbd-serverd(8)\n"
	"      --hb-interval MS   between heartbeats (1000)\n"
	"      --hb-misses N      missing heartbeats that are tolerated (5)\n"
	"      --name-keep S      seconds for the name of a client that was lost (120)\n"
	"      --check            read the configuration, say what is wrong, and end\n"
	"  -h, --help\n"
	"  -V, --version\n";

u64 serverd_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000 + (u64)t.tv_nsec / 1000000;
}

u64 serverd_random(void)
{
	u64 n;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		abort();	/* fewer bytes than 256 are never refused */
	return n;
}

/* Clients can cause lines as fast as they send messages. */
struct main_log {
	u64 since;
	unsigned int lines, dropped;
};

static bool main_may_log(struct main_log *l)
{
	u64 now = serverd_now_ms();

	if (now >= l->since + MAIN_LOG_MS) {
		if (l->dropped)
			fprintf(stderr, "ibnbd-serverd: %u lines were left out\n", l->dropped);
		*l = (struct main_log){ .since = now };
	}
	if (l->lines++ < MAIN_LOG_LINES)
		return true;
	l->dropped++;
	return false;
}

/* Strangers take no line of what clients cause. */
static void main_refused(void *priv, const char *peer, const char *what)
{
	static struct main_log log;
	char *text;

	if (!main_may_log(&log))
		return;
	text = escape_text(ESCAPE_LINE, what);
	fprintf(stderr, "ibnbd-serverd: %s: %s\n", peer, text);
	free(text);
}

void serverd_log(const char *fmt, ...)
{
	static struct main_log log;
	char *raw, *text;
	va_list ap;
	int n;

	if (!main_may_log(&log))
		return;
	va_start(ap, fmt);
	n = vasprintf(&raw, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	text = escape_text(ESCAPE_LINE, raw);
	fprintf(stderr, "ibnbd-serverd: %s\n", text);
	free(text);
	free(raw);
}

/* ---- options ------------------------------------------------------------------- */

static const struct main_number {
	const char *name;
	u32 min, max;
	size_t at;
} main_numbers[] = {
	{ "queue-depth", 2, 65535, offsetof(struct serverd_opts, queue_depth) },
	{ "max-memory", 1, 1 << 30, offsetof(struct serverd_opts, max_memory_mb) },
	{ "max-memory-per-peer", 1, 1 << 30, offsetof(struct serverd_opts, max_memory_per_peer_mb) },
	{ "max-memory-per-key", 1, 1 << 30, offsetof(struct serverd_opts, max_memory_per_key_mb) },
	{ "max-sessions", 1, 65536, offsetof(struct serverd_opts, max_sessions) },
	{ "max-sessions-per-peer", 1, 65536, offsetof(struct serverd_opts, max_sessions_per_peer) },
	{ "max-sessions-per-key", 1, 65536, offsetof(struct serverd_opts, max_sessions_per_key) },
	{ "max-paths-half-open", 1, 65536, offsetof(struct serverd_opts, max_paths_half_open) },
	{ "max-paths-half-open-per-peer", 1, 65536,
	  offsetof(struct serverd_opts, max_paths_half_open_per_peer) },
	{ "hb-interval", 100, 60000, offsetof(struct serverd_opts, hb_ms) },
	{ "hb-misses", 1, 1000, offsetof(struct serverd_opts, hb_misses) },
	{ "name-keep", 0, 86400, offsetof(struct serverd_opts, name_keep_s) },
};

#define MAIN_NUMBERS	((int)(sizeof(main_numbers) / sizeof(*main_numbers)))

static int main_number(const struct main_number *n, const char *s, struct serverd_opts *o)
{
	char *end;
	unsigned long v = strtoul(s, &end, 10);

	if (*s < '0' || *s > '9' || *end || v < n->min || v > n->max)
		return say_error(SAY_USAGE, "--%s is %u to %u", n->name, n->min, n->max);
	*(u32 *)((char *)o + n->at) = (u32)v;
	return -1;
}

/* Return: -1: go on; else the exit code. */
static int main_options(int argc, char **argv, struct serverd_opts *o, bool *check)
{
	struct option all[] = {
		[MAIN_NUMBERS] = { "listen", required_argument, NULL, 'l' },
		{ "config", required_argument, NULL, 'c' },
		{ "policy", required_argument, NULL, 'p' },
		{ "check", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	static const char *listen[MAIN_LISTEN];
	int opt, rc;

	for (opt = 0; opt < MAIN_NUMBERS; opt++)
		all[opt] = (struct option){ main_numbers[opt].name, required_argument, NULL, opt };
	o->listen = listen;
	o->name_keep_s = MAIN_NAME_KEEP;
	optind = 0;
	while ((opt = getopt_long(argc, argv, "l:c:p:hV", all, NULL)) != -1) {
		switch (opt) {
		case 0 ... MAIN_NUMBERS - 1:
			rc = main_number(&main_numbers[opt], optarg, o);
			if (rc >= 0)
				return rc;
			break;
		case 'l':
			if (o->nr_listen == MAIN_LISTEN)
				return say_error(SAY_USAGE, "at most %d addresses", MAIN_LISTEN);
			listen[o->nr_listen++] = optarg;
			break;
		case 'c':
			o->config = optarg;
			break;
		case 'p':
			o->policy = optarg;
			break;
		case 'k':
			*check = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'V':
			puts("ibnbd-serverd " IBNBD_VERSION);
			return 0;
		default:
			fputs(usage, stderr);
			return SAY_USAGE;
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		return say_error(SAY_USAGE, "%s: not an option; see ibnbd-serverd(8)", argv[optind]);
	}
	return -1;
}

/* ---- the loop -------------------------------------------------------------------- */

static void main_reload(struct serverd *d)
{
	struct serverd_conf *c, *old = d->conf;

	notify_systemd("RELOADING=1\nMONOTONIC_USEC=%llu",
		       (unsigned long long)serverd_now_ms() * 1000);
	c = serverd_conf_load(&d->opts);
	if (!c) {
		serverd_log("the configuration has a mistake: the one before stays");
	} else {
		if (c->auth != old->auth || c->port != old->port ||
		    strcmp(c->writer_file ?: "", old->writer_file ?: ""))
			serverd_log("a change of auth, port_nr or writer_file counts after a restart");
		d->conf = c;
		serverd_conf_free(old);
		serverd_sessions_judge(d);
	}
	notify_systemd("READY=1");
}

static void main_signal(struct serverd *d, int fd)
{
	struct signalfd_siginfo s;

	if (read(fd, &s, sizeof(s)) != sizeof(s))
		return;
	if (s.ssi_signo == SIGHUP)
		main_reload(d);
	else
		d->stopping = true;
}

static void main_turn(struct serverd *d, int signals)
{
	struct ibtrs_op *op[MAIN_OPS];
	struct epoll_event ev[8];
	int i, n;

	serverd_nbd_done(d);
	serverd_ring_flush(d);
	n = epoll_wait(d->ep, ev, 8, SERVERD_LOOK_MS);
	for (i = 0; i < n; i++)
		if (ev[i].data.fd == signals)
			main_signal(d, signals);
		else if (ev[i].data.fd == d->status.ep)
			serverd_status_ready(d);
		else
			serverd_nbd_ready(d, ev[i].data.fd, ev[i].events);
	serverd_ring_done(d);
	serverd_jobs_done(d);
	if (d->stopping)
		return;
	n = ibtrs_srv_poll(d->srv, op, MAIN_OPS, 0);
	/* Before the ops: a session that has ended may be the earlier life of one of theirs. */
	serverd_sessions_reap(d);
	for (i = 0; i < n; i++)
		serverd_msg(d, op[i]);
	serverd_sessions_reap(d);
}

static void main_look(struct serverd *d, u64 *looked)
{
	u64 now = serverd_now_ms();

	if (now < *looked + SERVERD_LOOK_MS)
		return;
	*looked = now;
	serverd_exports_look(d);
	serverd_sessions_look(d);
	serverd_status_look(d);
	notify_systemd("WATCHDOG=1");
}

static int main_watch(struct serverd *d, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return fd >= 0 && epoll_ctl(d->ep, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/*
 * Requests end, what was open is flushed and closed, the records are kept. The session of a client
 * is there as long as its requests, so the transport goes first.
 */
static void main_stop(struct serverd *d, int signals)
{
	notify_systemd("STOPPING=1");
	d->stopping = true;
	while (ibtrs_srv_free(d->srv))
		main_turn(d, signals);
	d->srv = NULL;
	for (serverd_sessions_reap(d); d->sessions; serverd_sessions_reap(d))
		main_turn(d, signals);
	serverd_records_keep_now(d);
}

/* ---- the start --------------------------------------------------------------------- */

static int main_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN);		/* of leases (backing.c) */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A server that was killed leaves its socket behind: none listens there. */
static void main_unlink_stale(const char *at)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = at + strlen("unix:");
	struct stat st;
	int fd;

	if (strncmp(at, "unix:", strlen("unix:")) || strlen(path) >= sizeof(to.sun_path) ||
	    lstat(path, &st) || !S_ISSOCK(st.st_mode))
		return;
	strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) && errno == ECONNREFUSED)
		unlink(path);
	close(fd);
}

static int main_listen_at(struct serverd *d, const char *at)
{
	char why[IBTRS_WHY_LEN];
	int port;

	main_unlink_stale(at);
	port = ibtrs_srv_listen(d->srv, at, why);
	if (port < 0)
		return say_error(SAY_FAILED, "%s", why);
	serverd_log(port ? "listens at %s, port %d" : "listens at %s", at, port);
	return 0;
}

static int main_listen(struct serverd *d)
{
	char at[32];
	unsigned int i;
	int rc = 0;

	if (!d->opts.nr_listen) {
		snprintf(at, sizeof(at), "ip:[::]:%u", d->conf->port);
		rc = main_listen_at(d, at);
		if (rc)
			say_hint("without RDMA say where to listen: --listen tcp:ADDRESS, --listen unix:/PATH");
	}
	for (i = 0; i < d->opts.nr_listen && !rc; i++)
		rc = main_listen_at(d, d->opts.listen[i]);
	return rc;
}

static int main_new(struct serverd *d)
{
	const struct ibtrs_srv_opts o = {
		.size = sizeof(o), .queue_depth = d->opts.queue_depth ?: MAIN_DEPTH,
		.max_io_size = MAIN_IO_SIZE, .max_memory_mb = d->opts.max_memory_mb,
		.max_memory_per_peer_mb = d->opts.max_memory_per_peer_mb,
		.max_memory_per_key_mb = d->opts.max_memory_per_key_mb,
		.max_sessions = d->opts.max_sessions,
		.max_sessions_per_peer = d->opts.max_sessions_per_peer,
		.max_sessions_per_key = d->opts.max_sessions_per_key,
		.max_paths_half_open = d->opts.max_paths_half_open,
		.max_paths_half_open_per_peer = d->opts.max_paths_half_open_per_peer, .priv = d,
		.hb_ms = d->opts.hb_ms, .hb_misses = d->opts.hb_misses,
		.name_keep_s = d->opts.name_keep_s,
		.admit = serverd_session_admit, .gone = serverd_session_gone,
		.memory = serverd_ring_memory, .memory_gone = serverd_ring_memory_gone,
		.auth = d->conf->auth, .key = serverd_conf_key, .refused = main_refused,
	};
	char why[IBTRS_WHY_LEN];
	int err;

	err = serverd_jobs_start(d);
	if (err)
		return say_error(SAY_FAILED, "cannot start a thread: %s", strerror(-err));
	if (serverd_records_load(d))
		return SAY_FAILED;
	serverd_ring_start(d);
	if (ibtrs_srv_new(&o, &d->srv, why))
		return say_error(SAY_FAILED, "%s", why);
	return main_listen(d);
}

static int main_run(struct serverd *d)
{
	int signals = main_signals(), rc, err;
	u64 looked = serverd_now_ms();

	d->ep = epoll_create1(EPOLL_CLOEXEC);
	rc = main_new(d);
	if (rc)
		return rc;
	err = main_watch(d, signals);
	err = err ?: main_watch(d, ibtrs_srv_fd(d->srv));
	err = err ?: main_watch(d, d->jobs_fd);
	serverd_status_start(d);
	err = err ?: main_watch(d, d->status.ep);
	if (err)
		return say_error(SAY_FAILED, "no epoll set: %s", strerror(-err));
	serverd_status_look(d);
	notify_systemd("READY=1");
	while (!d->stopping) {
		main_turn(d, signals);
		main_look(d, &looked);
	}
	main_stop(d, signals);
	serverd_status_stop(d);
	serverd_ring_stop(d);
	return 0;
}

int serverd_main(int argc, char **argv)
{
	static struct serverd d;
	bool check = false;
	int rc = main_options(argc, argv, &d.opts, &check);

	if (rc >= 0)
		return rc;
	escape_locale();
	notify_open();
	d.conf = serverd_conf_load(&d.opts);
	if (!d.conf)
		return SAY_USAGE;
	if (!*d.conf->search)
		return say_error(SAY_USAGE, "nothing is exported: set dev_search_path in %s",
				 d.opts.config ?: "/etc/ibnbd/server.conf");
	return check ? 0 : main_run(&d);
}
