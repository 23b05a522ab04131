// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames of a client against a server of libibtrs (protocol 12).
 *
 * The first byte chooses how far the handshake is done for the input, so that what follows meets a
 * connection before its CONN_REQ, before INFO_REQ, or a path that is up, with FENCE and TRIAL or
 * without; or a connection of authentication, before HELLO. Before its CONN_REQ it may be a
 * handshake of TLS, with the key or another one. The second byte is how many bytes are sent at a
 * time. The server must answer each request or close the path, and must let another client in at
 * the end.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ibtrs/proto/auth.h"
#include "ibtrs/proto/msg.h"
#include "ibtrs/user/frame.h"
#include "ibtrs/user/libibtrs.h"

#define LATE 4

static int dial(struct ibtrs_srv *srv)
{
	int fd[2], err;

	err = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) ?: ibtrs_srv_take(srv, fd[1]);
	if (err)
		abort();
	return fd[0];
}

static void frame(int fd, u16 op, const void *data, u32 len)
{
	const struct ibtrs_frame f = { .op = op, .len = len };
	u8 head[IBTRS_FRAME_LEN];

	ibtrs_frame_encode(head, &f);
	if (send(fd, head, sizeof(head), MSG_NOSIGNAL) < 0 || send(fd, data, len, MSG_NOSIGNAL) < 0)
		return;
}

/* Ops end late, in another order than they came. */
static void serve(struct ibtrs_srv *srv, struct ibtrs_op **late, unsigned int *nr)
{
	struct ibtrs_op *op[8];
	int n = ibtrs_srv_poll(srv, op, 8, 0), i;

	for (i = 0; i < n; i++) {
		volatile u8 sum = 0;
		u32 k;

		for (k = 0; k < op[i]->hdr_len; k++)
			sum ^= ((const u8 *)op[i]->hdr)[k];
		if (op[i]->len)
			((u8 *)op[i]->data)[op[i]->len - 1] ^= sum;
		if (*nr == LATE) {
			ibtrs_op_reply(late[0], -EIO);
			memmove(late, late + 1, (LATE - 1) * sizeof(*late));
			--*nr;
		}
		late[(*nr)++] = op[i];
	}
}

static void drain(int fd)
{
	u8 buf[16384];

	while (recv(fd, buf, sizeof(buf), 0) > 0)
		;
}

static bool let_in(struct ibtrs_srv *srv, int fd, u8 id, u8 ext, const char *name)
{
	const struct ibtrs_conn_req m = {
		.cid_num = 1, .recon_cnt = 1, .first_conn = true, .ext = ext,
		.path_uuid = { id }, .session_uuid = { id },
	};
	struct ibtrs_wire_conn_req w;
	struct ibtrs_wire_info_req info;
	struct ibtrs_op *op;
	u8 head[IBTRS_FRAME_LEN];
	struct ibtrs_frame f;

	ibtrs_msg_conn_req_encode(&w, &m);
	frame(fd, IBTRS_FRAME_REQ, &w, sizeof(w));
	if (!name)
		return true;
	ibtrs_msg_info_req_encode(&info, name);
	frame(fd, IBTRS_FRAME_SEND, &info, sizeof(info));
	ibtrs_srv_poll(srv, &op, 0, 0);
	if (recv(fd, head, sizeof(head), 0) != sizeof(head))
		return false;
	ibtrs_frame_decode(head, &f);
	drain(fd);
	return f.op == IBTRS_FRAME_REP;
}

static void knock(struct ibtrs_srv *srv, int fd)
{
	const struct ibtrs_auth_req m = { .recon_cnt = 1, .path_uuid = { 1 } };
	struct ibtrs_wire_auth_req w;
	struct ibtrs_op *op;

	ibtrs_auth_req_encode(&w, &m);
	frame(fd, IBTRS_FRAME_REQ, &w, sizeof(w));
	ibtrs_srv_poll(srv, &op, 0, 0);
	drain(fd);
}

static unsigned int keys(void *priv, const char *name,
			 uint8_t key[IBTRS_SECRETS][IBTRS_SECRET_LEN])
{
	memset(key, 'k', IBTRS_SECRET_LEN);
	return name[0] == 'k';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ibtrs_srv_opts o = {
		.size = sizeof(o), .queue_depth = 4, .max_io_size = 4096, .max_paths_half_open = 3,
		.auth = IBTRS_SRV_AUTH_OPTIONAL, .key = keys,
	};
	struct ibtrs_op *late[LATE];
	unsigned int nr = 0, turns = 0;
	char why[IBTRS_WHY_LEN];
	struct ibtrs_srv *srv;
	size_t grain, n;
	int fd, other;

	if (size < 2 || ibtrs_srv_new(&o, &srv, why))
		return -1;
	fd = dial(srv);
	switch (data[0] % 5) {
	case 1:
		let_in(srv, fd, 1, IBTRS_EXT_WORDS, NULL);
		break;
	case 2:
		assert(let_in(srv, fd, 1, 0, "fuzz"));
		break;
	case 3:
		assert(let_in(srv, fd, 1, IBTRS_EXT_FENCE | IBTRS_EXT_TRIAL, "fuzz"));
		break;
	case 4:
		knock(srv, fd);
		break;
	}
	grain = data[1] ? data[1] * 4 : size;
	for (data += 2, size -= 2; size && turns++ < 256; data += n, size -= n) {
		ssize_t sent = send(fd, data, grain < size ? grain : size, MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN)
			break;
		n = sent > 0 ? (size_t)sent : 0;
		serve(srv, late, &nr);
		drain(fd);
	}
	close(fd);
	serve(srv, late, &nr);
	while (nr)
		ibtrs_op_reply(late[--nr], 0);
	other = dial(srv);
	assert(let_in(srv, other, 2, IBTRS_EXT_FENCE, "other"));
	close(other);
	assert(!ibtrs_srv_free(srv));
	return 0;
}
