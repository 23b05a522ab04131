// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a client of libibtrs hears from whoever answers (protocol 12.1, 12.2).
 *
 * The first byte chooses: the handshake of TLS with somebody who has not the key, which never
 * comes to an end; or an answer to WHERE. The second one is how many bytes arrive at a time.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ibtrs/user/clt.h"
#include "ibtrs/user/stream.h"

static const u8 key[IBTRS_SECRET_LEN] = "a key of the fuzzer, of 32 bytes";

static void shake(const u8 *data, size_t size, size_t grain)
{
	struct ibtrs_wc wc;
	struct ibtrs_qp *qp;
	size_t n, turns = size;
	u8 heard[4096];
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	qp = ibtrs_stream_new(fd[0], ibtrs_tls_clt(fd[0], "fuzz", key));
	while (size && !qp->verbs->flush(qp)) {
		n = grain < size ? grain : size;
		if (send(fd[1], data, n, MSG_NOSIGNAL) < 0)
			break;
		data += n;
		size -= n;
		qp->verbs->turn(qp, false);
		assert(qp->verbs->poll(qp, &wc) <= 0);
		if (recv(fd[1], heard, sizeof(heard), 0) < 0)
			assert(errno == EAGAIN || errno == ECONNRESET);
	}
	close(fd[1]);
	/* The handshake may stop behind each piece of a message; epoll calls again then. */
	do
		qp->verbs->turn(qp, false);
	while (!qp->verbs->poll(qp, &wc) && turns--);
	assert(qp->err < 0 && qp->why);
	qp->verbs->close(qp);
	qp->verbs->free(qp);
}

static void told(const void *data, size_t size)
{
	static const struct ibtrs_clt_opts o = {
		.size = sizeof(o), .flags = IBTRS_CLT_NOWAIT, .name = "fuzz", .key_name = "fuzz",
		.key = key,
	};
	static const char *const path = "auto:192.0.2.1";
	const struct ibtrs_wc wc = {
		.op = IBTRS_FRAME_WHERE, .len = size < 500 ? (u32)size : 500, .data = data,
	};
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	char why[IBTRS_WHY_LEN];
	u32 i;

	if (ibtrs_ctx_new(&ctx, NULL) || ibtrs_clt_open(ctx, &path, 1, &o, &clt, why))
		abort();
	ibtrs_auto_told(&clt->paths[1], &wc);
	assert(clt->nr_paths <= clt->max_paths);
	for (i = 2; i < clt->nr_paths; i++)
		assert(clt->paths[i].place.rdma && clt->paths[i].place.port);
	ibtrs_clt_close(clt);
	if (ibtrs_ctx_free(ctx))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return -1;
	if (data[0] & 1)
		told(data + 2, size - 2);
	else
		shake(data + 2, size - 2, data[1] ?: size);
	return 0;
}
