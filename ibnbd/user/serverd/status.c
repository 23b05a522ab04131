// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who is connected and what they have open, for the command ibnbd: below the directory that systemd
 * makes for the service, RUNTIME_DIRECTORY, `sessions` and `devices` have the form of the kernel
 * server's class/ibtrs-server and ctl/devices (docs/sysfs.md), as far as the command reads them.
 * Each change replaces the whole tree at once: `.tree` is a link to the newest one.
 *
 * A file that takes an order is a link to a FIFO, which outlives the tree, so that no order is lost
 * between two of them. Whoever may write there may give orders: the server's user, and root.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

#define STATUS_NAME	200	/* bytes of a name, before #2; of a longer one the end is kept */

/* For each user to read, whatever the umask of the service. */
static void status_put(int dir, const char *name, const char *fmt, ...)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	va_list ap;

	if (fd < 0)
		return;
	va_start(ap, fmt);
	vdprintf(fd, fmt, ap);
	va_end(ap);
	fchmod(fd, 0644);
	close(fd);
}

/* A new directory; if there is one of that name, NAME#2 and so on. Return: it, or -1. */
static int status_dir(int at, const char *name)
{
	char try[STATUS_NAME + 16];
	size_t len = strlen(name);
	unsigned int i;
	int err = -1;

	if (len > STATUS_NAME)
		name += len - STATUS_NAME;
	snprintf(try, sizeof(try), "%s", name);
	for (i = 2; i < 1000; i++) {
		err = mkdirat(at, try, 0755);
		if (!err || errno != EEXIST)
			break;
		snprintf(try, sizeof(try), "%s#%u", name, i);
	}
	if (err)
		return -1;
	fchmodat(at, try, 0755, 0);
	return openat(at, try, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void status_remove(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		unlinkat(at, name, 0);
		return;
	}
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			status_remove(dirfd(dir), e->d_name);
	closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

/* ---- orders ---------------------------------------------------------------------- */

/*
 * Close the open @id, or if @peer says so the paths from there, of the session @session. @tree: the
 * newest one that has it.
 */
struct status_order {
	struct status_order *next;
	u64 session;
	u32 id;
	char peer[IBTRS_ADDR_STR_MAX];
	unsigned int nr;
	unsigned int tree;
	int fd;
};

static void order_name(const struct status_order *o, char name[32])
{
	snprintf(name, 32, ".orders/%u", o->nr);
}

static struct status_order *order_find(struct serverd *d, u64 session, u32 id, const char *peer)
{
	struct status_order *o = d->status.orders;

	while (o && (o->session != session || o->id != id || strcmp(o->peer, peer)))
		o = o->next;
	return o;
}

static struct status_order *order_new(struct serverd *d, u64 session, u32 id, const char *peer)
{
	struct status_order *o = calloc(1, sizeof(*o));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = o };
	char name[32];

	if (!o)
		return NULL;
	o->session = session;
	o->id = id;
	snprintf(o->peer, sizeof(o->peer), "%s", peer);
	o->nr = d->status.nr_orders++;
	order_name(o, name);
	o->fd = mkfifoat(d->status.dir, name, 0600) ? -1 :
		openat(d->status.dir, name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (o->fd < 0 || epoll_ctl(d->status.ep, EPOLL_CTL_ADD, o->fd, &ev)) {
		serverd_log("cannot take orders about session number %llu: %s",
			    (unsigned long long)session, strerror(errno));
		unlinkat(d->status.dir, name, 0);
		if (o->fd >= 0)
			close(o->fd);
		free(o);
		return NULL;
	}
	o->next = d->status.orders;
	d->status.orders = o;
	return o;
}

/* Those that are in no tree newer than @tree. */
static void orders_end(struct serverd *d, unsigned int tree)
{
	struct status_order **at = &d->status.orders, *o;
	char name[32];

	while ((o = *at)) {
		if (o->tree > tree) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		order_name(o, name);
		unlinkat(d->status.dir, name, 0);
		close(o->fd);
		free(o);
	}
}

/* The file @name of @dir, which is four directories below RUNTIME_DIRECTORY, takes the order. */
static void status_order(struct serverd *d, int dir, const char *name, u64 session, u32 id,
			 const char *peer)
{
	struct status_order *o = order_find(d, session, id, peer) ?:
				 order_new(d, session, id, peer);
	char fifo[32], to[64];

	if (!o)
		return;
	o->tree = d->status.nr;
	order_name(o, fifo);
	snprintf(to, sizeof(to), "../../../../../%s", fifo);
	if (symlinkat(to, dir, name))
		serverd_log("cannot take orders by %s: %s", name, strerror(errno));
}

static void order_do(struct serverd *d, const struct status_order *o)
{
	struct serverd_session *s = d->sessions;
	struct serverd_open *open;

	while (s && s->number != o->session)
		s = s->next;
	if (!s || d->stopping)
		return;
	if (*o->peer) {
		serverd_log("session %s: its paths from %s are closed by order", s->label, o->peer);
		ibtrs_srv_disconnect(d->srv, s->number, o->peer);
		return;
	}
	open = serverd_session_find(s, o->id);
	if (open) {
		serverd_open_tell(d, open, IBNBD_EVENT_REVOKED);
		serverd_open_lose(d, open, "by force");
	}
}

/* What several have written arrives as one text: each line is an order, 11 is two. */
void serverd_status_ready(struct serverd *d)
{
	char text[64], *rest = text, *line;
	struct epoll_event ev;
	struct status_order *o;
	ssize_t n;

	if (epoll_wait(d->status.ep, &ev, 1, 0) != 1)
		return;
	o = ev.data.ptr;
	n = read(o->fd, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = 0;
	while ((line = strsep(&rest, "\n"))) {
		if (*line && !line[strspn(line, "1")])
			order_do(d, o);
		else if (*line)
			serverd_log("an order was not taken: write 1 to it");
	}
}

/* ---- what is there ------------------------------------------------------------- */

static void status_name(const struct serverd_export *e, const struct serverd_open *o, char *name,
			size_t size)
{
	char at[64], to[IBNBD_EXPORT_PATH_MAX];
	const char *text = o->name;
	ssize_t n = -1;

	if (e->kind == SERVERD_DISK) {
		snprintf(at, sizeof(at), "/sys/dev/block/%u:%u", e->dev >> 20, e->dev & 0xfffff);
		n = readlink(at, to, sizeof(to) - 1);
	} else if (e->kind == SERVERD_FILE) {
		snprintf(at, sizeof(at), "/proc/self/fd/%d", o->b.fd);
		n = readlink(at, to, sizeof(to) - 1);
	}
	if (n > 0) {
		to[n] = 0;
		text = e->kind == SERVERD_DISK ? strrchr(to, '/') + 1 : to;
	}
	ibnbd_linkname(text, '#', name, size);
}

static void status_identity(int dir, const struct serverd_export *e, const struct serverd_open *o)
{
	char hex[2 * IBNBD_ID_LEN + 1];
	unsigned int i;

	for (i = 0; i < IBNBD_ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", e->identity.id[i]);
	if (o->b.id_unknown)
		status_put(dir, "identity", "none (cannot be read: %d)\n", o->b.id_unknown);
	else if (e->identity.kind == IBNBD_ID_NONE)
		status_put(dir, "identity", "none\n");
	else
		status_put(dir, "identity", "%s:%s\n", ibnbd_identity_word(e->identity.kind), hex);
}

static void status_open(struct serverd *d, int sessions, const struct serverd_open *o)
{
	int dir = status_dir(sessions, o->session->label);

	if (dir < 0)
		return;
	status_put(dir, "mapping_path", "%s\n", o->name);
	status_put(dir, "access_mode", "%s\n", ibnbd_access_word(o->access));
	status_put(dir, "read_only", "%d\n", !ibnbd_access_writes(o->access));
	status_put(dir, "device_id", "%u\n", o->id);
	status_order(d, dir, "force_close", o->session->number, o->id, "");
	close(dir);
}

static void status_export(struct serverd *d, int devices, const struct serverd_export *e)
{
	const struct serverd_open *o = e->opens;
	char name[IBNBD_LINKNAME_MAX], link[IBNBD_LINKNAME_MAX + 32];
	int dir, sessions;

	if (!o)
		return;
	status_name(e, o, name, sizeof(name));
	dir = status_dir(devices, name);
	if (dir < 0)
		return;
	if (e->kind == SERVERD_DISK) {
		snprintf(link, sizeof(link), "/sys/class/block/%s", name);
		if (symlinkat(link, dir, "block_dev"))
			serverd_log("%s: cannot say which block device it is: %s", name,
				    strerror(errno));
	}
	status_put(dir, "size", "%llu\n", (unsigned long long)e->nsectors);
	status_put(dir, "claimed", "%d\n", e->claims > 0);
	status_identity(dir, e, o);
	sessions = status_dir(dir, "sessions");
	for (; o && sessions >= 0; o = o->of_export)
		if (o->state == SERVERD_OPEN_LIVE)
			status_open(d, sessions, o);
	if (sessions >= 0)
		close(sessions);
	close(dir);
}

struct status_paths {
	struct serverd *d;
	u64 session;
	int dir;
};

static void status_path(void *priv, const char *peer)
{
	const struct status_paths *p = priv;
	char name[IBNBD_LINKNAME_MAX];
	int dir;

	ibnbd_linkname(peer, '#', name, sizeof(name));
	dir = status_dir(p->dir, name);
	if (dir < 0)
		return;
	status_put(dir, "src_addr", "%s\n", peer);
	status_order(p->d, dir, "disconnect", p->session, 0, peer);
	close(dir);
}

static void status_session(struct serverd *d, int sessions, const struct serverd_session *s)
{
	struct status_paths p = { .d = d, .session = s->number };
	int dir = s->gone ? -1 : status_dir(sessions, s->label);

	if (dir < 0)
		return;
	status_put(dir, "auth", "%s\n", s->key);
	p.dir = status_dir(dir, "paths");
	if (p.dir >= 0) {
		ibtrs_srv_peers(d->srv, s->number, status_path, &p);
		close(p.dir);
	}
	close(dir);
}

static void status_text_peer(void *priv, const char *peer)
{
	fprintf(priv, "%s\n", peer);
}

/* All of it that may change, as a text. Allocated, or NULL. */
static char *status_text(const struct serverd *d)
{
	const struct serverd_session *s;
	const struct serverd_export *e;
	const struct serverd_open *o;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (e = d->exports; e; e = e->next) {
		fprintf(f, "%p %llu %u\n", (const void *)e, (unsigned long long)e->nsectors,
			e->claims);
		for (o = e->opens; o; o = o->of_export)
			fprintf(f, "%p %u %d\n", (const void *)o, o->id, o->state);
	}
	for (s = d->sessions; s; s = s->next) {
		fprintf(f, "%llu %d\n", (unsigned long long)s->number, s->gone);
		ibtrs_srv_peers(d->srv, s->number, status_text_peer, f);
	}
	fclose(f);
	return text;
}

static void status_tree(struct serverd *d, int tree)
{
	int devices = status_dir(tree, "devices"), sessions = status_dir(tree, "sessions");
	const struct serverd_session *s;
	const struct serverd_export *e;

	for (e = d->exports; e && devices >= 0; e = e->next)
		status_export(d, devices, e);
	for (s = d->sessions; s && sessions >= 0; s = s->next)
		status_session(d, sessions, s);
	if (devices >= 0)
		close(devices);
	if (sessions >= 0)
		close(sessions);
}

static void status_publish(struct serverd *d)
{
	char name[32], old[32];
	int tree;

	snprintf(old, sizeof(old), ".tree.%u", d->status.nr);
	snprintf(name, sizeof(name), ".tree.%u", ++d->status.nr);
	status_remove(d->status.dir, name);
	tree = status_dir(d->status.dir, name);
	if (tree < 0)
		return;
	status_tree(d, tree);
	close(tree);
	unlinkat(d->status.dir, ".new", 0);
	if (symlinkat(name, d->status.dir, ".new") ||
	    renameat(d->status.dir, ".new", d->status.dir, ".tree"))
		serverd_log("cannot say what clients have open: %s", strerror(errno));
	status_remove(d->status.dir, old);
	orders_end(d, d->status.nr - 1);
}

static const char *const status_links[] = { "devices", "sessions" };

void serverd_status_start(struct serverd *d)
{
	const char *path = getenv("RUNTIME_DIRECTORY");
	char to[32];
	size_t i;
	int dir;

	d->status.dir = -1;
	d->status.ep = epoll_create1(EPOLL_CLOEXEC);
	if (!path || !*path)
		return;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		status_remove(dir, ".orders");	/* of one that was killed */
	if (dir < 0 || d->status.ep < 0 || mkdirat(dir, ".orders", 0755)) {
		serverd_log("cannot say in %s what clients have open: %s", path, strerror(errno));
		return;
	}
	for (i = 0; i < 2; i++) {
		snprintf(to, sizeof(to), ".tree/%s", status_links[i]);
		unlinkat(dir, status_links[i], 0);
		if (symlinkat(to, dir, status_links[i]))
			serverd_log("%s/%s: %s", path, status_links[i], strerror(errno));
	}
	d->status.dir = dir;
}

void serverd_status_look(struct serverd *d)
{
	char *text;

	if (d->status.dir < 0)
		return;
	text = status_text(d);
	if (text && d->status.said && !strcmp(text, d->status.said)) {
		free(text);
		return;
	}
	free(d->status.said);
	d->status.said = text;
	status_publish(d);
}

void serverd_status_stop(struct serverd *d)
{
	char tree[32];
	size_t i;

	close(d->status.ep);
	if (d->status.dir < 0)
		return;
	orders_end(d, d->status.nr);
	for (i = 0; i < 2; i++)
		unlinkat(d->status.dir, status_links[i], 0);
	unlinkat(d->status.dir, ".tree", 0);
	snprintf(tree, sizeof(tree), ".tree.%u", d->status.nr);
	status_remove(d->status.dir, tree);
	status_remove(d->status.dir, ".orders");
	close(d->status.dir);
	free(d->status.said);
}
