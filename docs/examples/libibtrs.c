// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* A server and a client of libibtrs in one process: one message out, one answer back. */
#include <libibtrs.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static void *serve(void *arg)
{
	struct ibtrs_op *op;

	if (ibtrs_srv_poll(arg, &op, 1, 5000) == 1) {	/* in a server: for ever */
		printf("session %s says: %.*s\n", op->name, op->hdr_len, (const char *)op->hdr);
		memcpy(op->data, "hello, client", op->len < 14 ? op->len : 14);
		ibtrs_op_reply(op, 0);
	}
	return NULL;
}

int main(void)
{
	struct ibtrs_clt_opts opts = { .size = sizeof(opts), .name = "example" };
	char why[IBTRS_WHY_LEN] = "no memory", path[32], answer[14] = "";
	const char *paths[] = { path };
	struct ibtrs_srv *srv;
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	pthread_t server;
	int port;
	if (ibtrs_srv_new(NULL, &srv, why) || ibtrs_ctx_new(&ctx, NULL) ||
	    (port = ibtrs_srv_listen(srv, "tcp:127.0.0.1:0", why)) < 0 ||
	    pthread_create(&server, NULL, serve, srv))
		return fprintf(stderr, "%s\n", why), 1;
	snprintf(path, sizeof(path), "tcp:127.0.0.1:%d", port);
	if (ibtrs_clt_open(ctx, paths, 1, &opts, &clt, why))
		return fprintf(stderr, "%s\n", why), 1;
	ibtrs_clt_call(clt, "hello, server", 14, answer, sizeof(answer), 5000);
	printf("the server says: %s\n", answer);
	ibtrs_clt_close(clt);
	return pthread_join(server, NULL) || ibtrs_ctx_free(ctx) || ibtrs_srv_free(srv);
}
