// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* Three servers and a client of libibtrs in one process: a log that two of the servers must have. */
#include <libibtrs.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LEGS	3
#define TEXT	32

static struct server {
	struct ibtrs_srv *srv;
	pthread_t thread;
	char log[16][TEXT];
	volatile int broken, stop;
} servers[LEGS];

static void *serve(void *arg)
{
	struct server *s = arg;
	struct ibtrs_op *op;

	while (!s->stop) {
		if (ibtrs_srv_poll(s->srv, &op, 1, 100) != 1)
			continue;
		char *entry = s->log[*(const unsigned char *)op->hdr % 16];

		if (!s->broken && op->len <= TEXT && op->dir == IBTRS_IO_WRITE)
			memcpy(entry, op->data, op->len);
		else if (!s->broken && op->len <= TEXT)
			memcpy(op->data, entry, op->len);
		ibtrs_op_reply(op, s->broken ? -EIO : 0);
	}
	return NULL;
}

/* One entry, written or read. @legs: 0: the group decides */
static int log_io(struct ibtrs_gq *q, int dir, unsigned int nr, char text[TEXT], unsigned int legs)
{
	struct ibtrs_io leg[LEGS];
	char hdr[4] = { (char)nr };
	struct ibtrs_gio io = { .dir = (unsigned char)dir, .hdr = hdr, .hdr_len = sizeof(hdr),
				.data = text, .len = TEXT, .legs = legs, .leg = leg }, *p = &io;

	if (ibtrs_gq_submit(q, &p, 1) != 1 || ibtrs_gq_poll(q, &p, 1, -1) != 1)
		return -EINVAL;
	if (dir == IBTRS_IO_WRITE)
		printf("entry %u: %d (%d %d %d)\n", nr, io.err, leg[0].err, leg[1].err, leg[2].err);
	return io.err;
}

int main(void)
{
	struct ibtrs_ctx_opts ctx_opts = { .size = sizeof(ctx_opts), .flags = IBTRS_CTX_THREAD };
	struct ibtrs_group_opts group_opts = { .size = sizeof(group_opts), .quorum = 2 };
	struct ibtrs_clt_opts opts = { .size = sizeof(opts), .name = "log" };
	char why[IBTRS_WHY_LEN] = "no memory", at[32], text[TEXT] = "first";
	struct ibtrs_clt *clt[LEGS];
	struct ibtrs_group *group;
	const char *path = at;
	struct ibtrs_ctx *ctx;
	struct ibtrs_gq *q;
	int i, port;

	ibtrs_ctx_new(&ctx, &ctx_opts);
	for (i = 0; i < LEGS; i++) {
		if (ibtrs_srv_new(NULL, &servers[i].srv, why) ||
		    (port = ibtrs_srv_listen(servers[i].srv, "tcp:127.0.0.1:0", why)) < 0 ||
		    pthread_create(&servers[i].thread, NULL, serve, &servers[i]))
			return fprintf(stderr, "%s\n", why), 1;
		snprintf(at, sizeof(at), "tcp:127.0.0.1:%d", port);
		if (ibtrs_clt_open(ctx, &path, 1, &opts, &clt[i], why))
			return fprintf(stderr, "%s\n", why), 1;
	}
	if (ibtrs_group_new(clt, LEGS, &group_opts, &group, why))
		return fprintf(stderr, "%s\n", why), 1;
	q = ibtrs_group_q(group, 0);
	log_io(q, IBTRS_IO_WRITE, 0, text, 0);
	servers[2].broken = 1;				/* leg 2 misses one write .. */
	log_io(q, IBTRS_IO_WRITE, 1, strcpy(text, "second"), 0);
	servers[2].broken = 0;
	log_io(q, IBTRS_IO_READ, 1, text, 0);		/* .. so another one has it .. */
	printf("read: %s\n", text);
	log_io(q, IBTRS_IO_WRITE, 1, text, 1u << 2);	/* .. and makes up for it */
	ibtrs_group_whole(group, 2, 1);
	ibtrs_group_free(group);
	for (i = 0; i < LEGS; i++) {
		ibtrs_clt_close(clt[i]);
		servers[i].stop = 1;
		pthread_join(servers[i].thread, NULL);
		ibtrs_srv_free(servers[i].srv);
	}
	return ibtrs_ctx_free(ctx);
}
