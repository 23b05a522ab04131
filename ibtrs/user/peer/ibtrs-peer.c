// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibtrs-peer: an end of a session of libibtrs, by hand and for tests.
 *
 * The server holds memory, which put and get write and read; a header says where. `say` sends any
 * header to any server, so it talks to the kernel's server in that one's own language.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ibtrs/user/peer/peer.h"

#define PEER_BATCH	8u		/* requests at a time */
#define PEER_PATHS	8u
#define SAY_MAX		65536u	/* bytes of a header, of data, of an answer */

static const char usage[] =
	"usage: ibtrs-peer serve AT[,AT..] [MIB]      hold MIB of memory (64), for put and get\n"
	"       ibtrs-peer ping PATH[,PATH..] [N]     N messages (5), and how long each took\n"
	"       ibtrs-peer load PATH[,PATH..] read|write [SECONDS [DEPTH [SIZE]]]\n"
	"           SIZE bytes (4096) of the server's memory, DEPTH requests at a time (16), for\n"
	"           SECONDS (5): how many there were, and how long they took\n"
	"       ibtrs-peer put PATH[,PATH..] OFFSET   what stdin has, to the server's memory\n"
	"       ibtrs-peer get PATH[,PATH..] OFFSET LEN\n"
	"       ibtrs-peer say PATH[,PATH..]          each line of stdin is a request:\n"
	"           call HEADER LEN                   a message, whose answer has LEN bytes\n"
	"           read HEADER LEN | write HEADER [DATA]\n"
	"       HEADER and DATA are hexadecimal; {N} stands for 4 bytes at N of the last answer.\n"
	"AT and PATH: ip:ADDRESS[:PORT] (RDMA), tcp:ADDRESS[:PORT] or unix:/NAME. PATH may be\n"
	"auto:ADDRESS[:PORT], and a server that is found so listens at ip:.. and tcp:..\n"
	"--json before ping or load: for programs. --in-place before load, put or get: data is\n"
	"not copied over RDMA.\n"
	"IBTRS_NAME is the name of the session (peer), IBTRS_POLICY which path a request goes to:\n"
	"min-inflight, round-robin or min-latency. IBTRS_KEY is a file with the 32 bytes of the\n"
	"key that has its name; a server then requires that one\n";

int fail(const char *what, int err)
{
	fprintf(stderr, "ibtrs-peer: %s: %s\n", what, strerror(-err));
	return 1;
}

static bool number(const char *s, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(s, &end, 0);
	return *s >= '0' && *s <= '9' && !*end && !errno;
}

/* ---- the key ------------------------------------------------------------ */

static struct {
	const char *name;		/* NULL: there is none */
	uint8_t bytes[IBTRS_SECRET_LEN];
} the_key;

static unsigned int key_get(void *priv, const char *name,
			    uint8_t key[IBTRS_SECRETS][IBTRS_SECRET_LEN])
{
	memcpy(key[0], the_key.bytes, IBTRS_SECRET_LEN);
	return !strcmp(name, the_key.name);
}

/* ---- the server --------------------------------------------------------- */

static int admit(void *priv, const char *name, const char *peer, const char *key,
		 char why[IBTRS_WHY_LEN])
{
	printf("session %s from %s%s%s\n", name, peer, *key ? ", key " : "", key);
	fflush(stdout);
	return 0;
}

static int execute(const struct ibtrs_op *op, uint8_t *memory, uint64_t size)
{
	struct peer_hdr h;

	if (op->hdr_len != sizeof(h))
		return -EOPNOTSUPP;
	memcpy(&h, op->hdr, sizeof(h));
	if (h.magic != PEER_MAGIC)
		return -EOPNOTSUPP;
	if (h.offset > size || op->len > size - h.offset)
		return -ERANGE;
	if (op->dir == IBTRS_IO_READ)
		memcpy(op->data, memory + h.offset, op->len);
	else
		memcpy(memory + h.offset, op->data, op->len);
	return 0;
}

static int serve(char *at, const char *mib)
{
	const struct ibtrs_srv_opts o = {
		.size = sizeof(o), .admit = admit, .key = key_get,
		.auth = the_key.name ? IBTRS_SRV_AUTH_REQUIRED : IBTRS_SRV_AUTH_OFF,
	};
	struct ibtrs_op *op[PEER_BATCH];
	char why[IBTRS_WHY_LEN];
	struct ibtrs_srv *srv;
	uint8_t *memory;
	uint64_t size;
	char *s;
	int n, i;

	if (!number(mib, &size) || !size || size > 65536)
		return fail(mib, -EINVAL);
	size <<= 20;
	memory = calloc(1, size);
	if (!memory)
		return fail("memory", -ENOMEM);
	n = ibtrs_srv_new(&o, &srv, why);
	for (s = strtok(at, ","); s && n >= 0; s = strtok(NULL, ",")) {
		n = ibtrs_srv_listen(srv, s, why);
		if (n >= 0)
			printf("port %d\n", n);
	}
	if (n < 0) {
		fprintf(stderr, "ibtrs-peer: %s\n", why);
		return 1;
	}
	fflush(stdout);
	while ((n = ibtrs_srv_poll(srv, op, PEER_BATCH, -1)) >= 0)
		for (i = 0; i < n; i++)
			ibtrs_op_reply(op[i], execute(op[i], memory, size));
	return fail("serve", n);
}

/* ---- the client --------------------------------------------------------- */

static int peer_open(struct peer *p, char *paths, uint32_t depth)
{
	const struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };
	const struct ibtrs_clt_opts o = {
		.size = sizeof(o), .name = getenv("IBTRS_NAME") ?: "peer",
		.q_depth = depth, .policy = getenv("IBTRS_POLICY"), .key_name = the_key.name,
		.key = the_key.name ? the_key.bytes : NULL,
	};
	const char *path[PEER_PATHS];
	char why[IBTRS_WHY_LEN];
	unsigned int nr = 0;
	char *s;
	int err;

	for (s = strtok(paths, ","); s && nr < PEER_PATHS; s = strtok(NULL, ","))
		path[nr++] = s;
	err = ibtrs_ctx_new(&p->ctx, &co);
	if (err)
		return fail("context", err);
	err = ibtrs_clt_open(p->ctx, path, nr, &o, &p->clt, why);
	if (err) {
		fprintf(stderr, "ibtrs-peer: %s\n", why);
		ibtrs_ctx_free(p->ctx);
		return 1;
	}
	p->q = ibtrs_clt_q(p->clt, 0);
	p->info.size = sizeof(p->info);
	ibtrs_clt_info(p->clt, &p->info);
	return 0;
}

static void peer_close(struct peer *p)
{
	ibtrs_clt_close(p->clt);
	ibtrs_ctx_free(p->ctx);
}

/* Sends @nr requests and waits for all of them. Return: the first error. */
static int peer_do(struct peer *p, struct ibtrs_io *const *io, unsigned int nr)
{
	struct ibtrs_io *done[PEER_BATCH];
	unsigned int sent = 0, ended = 0;
	int n, i, err = 0;

	while (ended < nr) {
		n = ibtrs_q_submit(p->q, io + sent, nr - sent);
		if (n < 0)
			return n;
		sent += (unsigned int)n;
		n = ibtrs_q_poll(p->q, done, PEER_BATCH, -1);
		if (n < 0)
			return n;
		for (i = 0; i < n; i++)
			err = err ?: done[i]->err;
		ended += (unsigned int)n;
	}
	return err;
}

/* @len bytes of @data to or from @offset of the server's memory. */
static int peer_move(struct peer *p, enum ibtrs_io_dir dir, uint64_t offset, uint8_t *data,
		     uint64_t len)
{
	struct ibtrs_io io[PEER_BATCH], *list[PEER_BATCH];
	struct peer_hdr h[PEER_BATCH];
	unsigned int n;
	int err = 0;

	while (len && !err) {
		for (n = 0; n < PEER_BATCH && len; n++) {
			uint32_t part = len < p->info.max_io_size ? (uint32_t)len :
								    p->info.max_io_size;

			h[n] = (struct peer_hdr){ .magic = PEER_MAGIC, .offset = offset };
			io[n] = (struct ibtrs_io){
				.dir = dir, .hdr = &h[n], .hdr_len = sizeof(h[n]),
				.data = data, .len = part,
			};
			list[n] = &io[n];
			offset += part;
			data += part;
			len -= part;
		}
		err = peer_do(p, list, n);
	}
	return err;
}

int in_place(struct peer *p, void *data, size_t len, enum ibtrs_io_dir dir)
{
	char why[IBTRS_WHY_LEN];

	if (!p->in_place || !ibtrs_clt_mem_add(p->clt, data, len,
					       dir == IBTRS_IO_READ ? IBTRS_MEM_READ : 0, why))
		return 0;
	fprintf(stderr, "ibtrs-peer: %s\n", why);
	return 1;
}

static int put(struct peer *p, uint64_t offset)
{
	size_t room = (size_t)p->info.max_io_size * PEER_BATCH, n;
	uint8_t *data = malloc(room);
	int err = data ? 0 : -ENOMEM;

	if (data && in_place(p, data, room, IBTRS_IO_WRITE))
		return 1;
	while (!err && (n = fread(data, 1, room, stdin))) {
		err = peer_move(p, IBTRS_IO_WRITE, offset, data, n);
		offset += n;
	}
	ibtrs_clt_mem_del(p->clt, data);
	free(data);
	return err ? fail("put", err) : 0;
}

static int get(struct peer *p, uint64_t offset, uint64_t len)
{
	uint8_t *data = calloc(1, len ?: 1);
	int err;

	if (data && in_place(p, data, len ?: 1, IBTRS_IO_READ))
		return 1;
	err = data ? peer_move(p, IBTRS_IO_READ, offset, data, len) : -ENOMEM;
	if (!err && (fwrite(data, 1, len, stdout) != len || fflush(stdout)))
		err = -EIO;
	ibtrs_clt_mem_del(p->clt, data);
	free(data);
	return err ? fail("get", err) : 0;
}

/* ---- say ---------------------------------------------------------------- */

struct bytes {
	size_t len;
	uint8_t data[SAY_MAX];
};

static int nibble(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes that @s stands for. Return: false: it makes no sense. */
static bool parse(const char *s, const struct bytes *last, struct bytes *to)
{
	size_t at;
	int n;

	for (to->len = 0; s && *s; to->len++) {
		if (to->len + 4 > sizeof(to->data))
			return false;
		if (sscanf(s, "{%zu}%n", &at, &n) == 1) {
			if (at + 4 > last->len)
				return false;
			memcpy(to->data + to->len, last->data + at, 4);
			to->len += 3;
			s += n;
			continue;
		}
		if (nibble(s[0]) < 0 || nibble(s[1]) < 0)
			return false;
		to->data[to->len] = (uint8_t)(nibble(s[0]) << 4 | nibble(s[1]));
		s += 2;
	}
	return s;
}

/* One request. Return: its result; -EINVAL: the line makes no sense. */
static int say_line(struct peer *p, char *line, struct bytes *last)
{
	static struct bytes hdr, data;
	const char *verb = strtok(line, "\n "), *h = strtok(NULL, "\n ");
	const char *arg = strtok(NULL, "\n ");
	struct ibtrs_io io = { .hdr = hdr.data, .data = data.data }, *list = &io;
	uint64_t len = 0;
	int err;

	if (!verb || !parse(h, last, &hdr))
		return -EINVAL;
	io.hdr_len = (uint16_t)hdr.len;
	if (!strcmp(verb, "write")) {
		if (!parse(arg ?: "", last, &data))
			return -EINVAL;
		io.dir = IBTRS_IO_WRITE;
		io.len = (uint32_t)data.len;
		last->len = 0;
		return peer_do(p, &list, 1);
	}
	if (!arg || !number(arg, &len) || len > sizeof(data.data))
		return -EINVAL;
	io.len = (uint32_t)len;
	if (!strcmp(verb, "call"))
		err = ibtrs_clt_call(p->clt, hdr.data, hdr.len, len ? data.data : NULL, len,
				     PEER_CALL_MS);
	else
		err = strcmp(verb, "read") ? -EINVAL : peer_do(p, &list, 1);
	last->len = err ? 0 : len;
	memcpy(last->data, data.data, last->len);
	return err;
}

static int say(struct peer *p)
{
	static struct bytes last;
	size_t room = 0, i;
	char *line = NULL;
	int err;

	while (getline(&line, &room, stdin) > 0) {
		err = say_line(p, line, &last);
		printf("%d ", err);
		for (i = 0; i < last.len; i++)
			printf("%02x", last.data[i]);
		printf("%s\n", err ? strerror(-err) : "");
		fflush(stdout);
	}
	free(line);
	return 0;
}

/* ---- the command -------------------------------------------------------- */

enum peer_opts {
	PEER_JSON = 1,
	PEER_IN_PLACE = 2,
};

/* @n: numbers that stand behind what the verb has in words. Return: the exit status. */
static int client_run(struct peer *p, const char *verb, const char *way, const uint64_t n[3])
{
	if (!strcmp(verb, "ping"))
		return ping(p, n[0]);
	if (!strcmp(verb, "load"))
		return load(p, way, n[0], n[1], n[2]);
	if (!strcmp(verb, "put"))
		return put(p, n[0]);
	if (!strcmp(verb, "get"))
		return get(p, n[0], n[1]);
	return say(p);
}

static int client(const char *verb, char **word, int words, unsigned int opts)
{
	struct peer p = { .json = opts & PEER_JSON, .in_place = opts & PEER_IN_PLACE };
	bool load = !strcmp(verb, "load");
	uint64_t n[3] = { 5, load ? 16 : 0, 4096 };
	int i, rc;

	for (i = 1 + load; i < words; i++)
		if (!number(word[i], &n[i - 1 - load]))
			return fputs(usage, stderr), 2;
	if (load && ((strcmp(word[1], "read") && strcmp(word[1], "write")) || !n[0] ||
		     n[0] > 86400 || !n[1] || n[1] > PEER_DEPTH))
		return fputs(usage, stderr), 2;
	rc = peer_open(&p, word[0], load ? (uint32_t)n[1] : 2 * PEER_BATCH);
	if (rc)
		return rc;
	rc = client_run(&p, verb, load ? word[1] : NULL, n);
	peer_close(&p);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *verb;
		int min, max;		/* words behind it */
		unsigned int opts;
	} verbs[] = {
		{ "serve", 1, 2 }, { "ping", 1, 2, PEER_JSON },
		{ "load", 2, 5, PEER_JSON | PEER_IN_PLACE }, { "put", 2, 2, PEER_IN_PLACE },
		{ "get", 3, 3, PEER_IN_PLACE }, { "say", 1, 1 }, { NULL },
	};
	static const struct option options[] = {
		{ "json", no_argument, NULL, PEER_JSON },
		{ "in-place", no_argument, NULL, PEER_IN_PLACE }, {},
	};
	const char *key = getenv("IBTRS_KEY"), *verb;
	char why[IBTRS_WHY_LEN], **word;
	unsigned int opts = 0;
	int words, c;
	size_t i;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) > 0)
		opts |= (unsigned int)c;	/* '?' has bits that no verb takes */
	if (key && ibtrs_key_read(key, the_key.bytes, &the_key.name, why)) {
		fprintf(stderr, "ibtrs-peer: %s: %s\n", key, why);
		return 1;
	}
	verb = argv[optind];
	word = argv + optind + 1;
	words = argc - optind - 1;
	for (i = 0; words > 0 && verbs[i].verb; i++) {
		if (strcmp(verb, verbs[i].verb) || words < verbs[i].min || words > verbs[i].max ||
		    opts & ~verbs[i].opts)
			continue;
		return i ? client(verb, word, words, opts) :
			   serve(word[0], words > 1 ? word[1] : "64");
	}
	fputs(usage, stderr);
	return 2;
}
