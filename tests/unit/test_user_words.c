// SPDX-License-Identifier: GPL-2.0-only
/*
 * What goes wrong outside of the library is said in words: the object, the cause, what to do. The
 * host's part of librdmacm is played here, so that each host can be had on any.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include "ibtrs/user/libibtrs.h"
#include "unit.h"

/* What each step of librdmacm answers: an errno, or 0. */
static struct {
	int channel, resolve, bind;
} host;

#if __has_include(<rdma/rdma_cma.h>)
#include <rdma/rdma_cma.h>

static struct rdma_event_channel channel;
static struct rdma_cm_id id;

static int answer(int err)
{
	errno = err;
	return err ? -1 : 0;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	if (answer(host.channel))
		return NULL;
	channel.fd = eventfd(0, EFD_CLOEXEC);
	return &channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *ch)
{
	close(ch->fd);
}

int rdma_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **to, void *context,
		   enum rdma_port_space ps)
{
	*to = &id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *cm)
{
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *cm, struct sockaddr *from, struct sockaddr *to, int ms)
{
	return answer(host.resolve);
}

int rdma_bind_addr(struct rdma_cm_id *cm, struct sockaddr *at)
{
	return answer(host.bind);
}
#define RDMA(err, words) err, words
#else
#define RDMA(err, words) -EOPNOTSUPP, "this libibtrs was built without rdma-core: use tcp:"
#endif

/* How opening @path ends; @why are the words. */
static int opens(const char *path, char *why)
{
	struct ibtrs_clt_opts o = { .size = sizeof(o), .name = "x" };
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	int err;

	CHECK_EQ(ibtrs_ctx_new(&ctx, NULL), 0);
	err = ibtrs_clt_open(ctx, &path, 1, &o, &clt, why);
	if (!err)
		ibtrs_clt_close(clt);
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
	return err;
}

static int listens(const char *at, char *why)
{
	struct ibtrs_srv *srv;
	int err;

	CHECK_EQ(ibtrs_srv_new(NULL, &srv, why), 0);
	err = ibtrs_srv_listen(srv, at, why);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
	return err;
}

UNIT_TEST(a_host_without_rdma)
{
	static const struct {
		const char *what;
		int channel, resolve, err;
		const char *why;
	} rows[] = {
		{ "no module", ENOENT, 0, RDMA(-ENOENT, "this host has no RDMA: load rdma_ucm and "
		  "the driver of an adapter, and give /dev/infiniband to a container") },
		{ "no adapter", ENODEV, 0, RDMA(-ENODEV, "this host has no RDMA: load rdma_ucm and "
		  "the driver of an adapter, and give /dev/infiniband to a container") },
		{ "no right", EACCES, 0, RDMA(-EACCES, "this user may not use the RDMA device: "
		  "that takes /dev/infiniband/rdma_cm and uverbsN") },
		{ "another way", 0, ENODEV, RDMA(-ENODEV, "no RDMA device has that address, or a "
		  "way to it: see rdma link") },
		{ "no route", 0, EHOSTUNREACH, RDMA(-EHOSTUNREACH, "no route leads there, or the "
		  "host does not answer") },
		{ "silence", 0, ETIMEDOUT, RDMA(-ETIMEDOUT, "the host does not answer") },
	};
	char why[IBTRS_WHY_LEN], want[IBTRS_WHY_LEN];
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		UNIT_ROW("%s", rows[i].what);
		host.channel = rows[i].channel;
		host.resolve = rows[i].resolve;
		snprintf(want, sizeof(want), "ip:10.0.0.1: %s", rows[i].why);
		CHECK_EQ(opens("ip:10.0.0.1", why), rows[i].err);
		CHECK_STR(why, want);
	}
	host.channel = host.resolve = 0;
}

UNIT_TEST(too_little_may_be_locked)
{
	struct rlimit before, low = { 65536, 65536 }, none = { RLIM_INFINITY, RLIM_INFINITY };
	char why[IBTRS_WHY_LEN];
	int rc, err;

	CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	low.rlim_max = before.rlim_max;
	host.resolve = ENOMEM;
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	err = opens("ip:10.0.0.1", why);
	CHECK_EQ(err, (const int[]){ RDMA(-ENOMEM, 0) }[0]);
	if (err == -ENOMEM)
		CHECK_STR(why, "ip:10.0.0.1: no memory, or more than may be locked: raise "
			  "LimitMEMLOCK= (systemd), --ulimit memlock= (container) or ulimit -l, "
			  "or lower the queue depth");
	/* Without a limit it is not the limit. Only root can lift it. */
	rc = setrlimit(RLIMIT_MEMLOCK, &none);
	if (err == -ENOMEM && !rc) {
		CHECK_EQ(opens("ip:10.0.0.1", why), -ENOMEM);
		CHECK_STR(why, "ip:10.0.0.1: no memory");
	}
	setrlimit(RLIMIT_MEMLOCK, &before);
	host.resolve = 0;
}

UNIT_TEST(an_address_of_another_host)
{
	char why[IBTRS_WHY_LEN], want[IBTRS_WHY_LEN];

	host.bind = EADDRNOTAVAIL;
	CHECK(listens("ip:10.9.9.9", why) < 0);
	snprintf(want, sizeof(want), "ip:10.9.9.9: cannot listen there: %s",
		 (const char *[]){ RDMA(0, "no RDMA device has that address, or a way to it: "
		 "see rdma link") }[1]);
	CHECK_STR(why, want);
}

/* ---- refused ------------------------------------------------------------ */

static bool over;

static void *serve(void *srv)
{
	struct ibtrs_op *op;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
		CHECK_EQ(ibtrs_srv_poll(srv, &op, 1, 20), 0);
	return NULL;
}

static int admit(void *priv, const char *name, const char *peer, const char *key, char *why)
{
	if (priv)
		snprintf(why, IBTRS_WHY_LEN, "%s", (const char *)priv);
	return -EACCES;
}

/* The words for a client that @words, or none, of a policy keep out. */
static void refused(const char *words, const char *want)
{
	struct ibtrs_srv_opts so = { .size = sizeof(so), .admit = admit, .priv = (void *)words };
	char why[IBTRS_WHY_LEN], path[64], all[IBTRS_WHY_LEN];
	struct ibtrs_srv *srv;
	pthread_t thread;

	snprintf(path, sizeof(path), "unix:/tmp/ibtrs-words-%d", getpid());
	snprintf(all, sizeof(all), "%s: the server says: %s", path, want);
	over = false;
	CHECK_EQ(ibtrs_srv_new(&so, &srv, why), 0);
	CHECK_EQ(ibtrs_srv_listen(srv, path, why), 0);
	CHECK_EQ(pthread_create(&thread, NULL, serve, srv), 0);
	CHECK_EQ(opens(path, why), -EACCES);
	CHECK_STR(why, all);
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}

UNIT_TEST(refused_by_policy)
{
	refused("x is for rack 2: use session y", "x is for rack 2: use session y");
	refused(NULL, "session x from local is not admitted: see the server's policy");
}
