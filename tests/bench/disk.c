// SPDX-License-Identifier: GPL-2.0-only
/*
 * disk DEVICE PATH read|write KIB DEPTH COUNT [poll] [in-place]: requests of a program that calls
 * libibnbd, and the nanoseconds of all. It sleeps for answers, or polls, and lets others run when
 * there are none: the machine has one CPU.
 */
#include <libibnbd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH 64

static struct ibnbd_req req[DEPTH];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int run(struct ibnbd_q *q, struct ibnbd_req **go, int depth, int count, uint64_t blocks,
	       int timeout)
{
	int idle = depth, sent = 0, ended = 0, n, i;

	for (i = 0; i < depth; i++)
		go[i] = &req[i];
	while (ended < count) {
		if (idle > count - sent)
			idle = count - sent;
		for (i = 0; i < idle; i++)
			go[i]->offset = (uint64_t)random() % blocks * go[i]->len;
		n = idle ? ibnbd_q_submit(q, go, (unsigned int)idle) : 0;
		if (n != idle)
			return -1;
		sent += n;
		n = ibnbd_q_poll(q, go, DEPTH, timeout);
		if (n < 0)
			return -1;
		if (!n)
			sched_yield();
		for (i = 0; i < n; i++)
			if (go[i]->err)
				return -1;
		ended += n;
		idle = n;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };
	const struct ibtrs_clt_opts session = { .size = sizeof(session), .name = "bench" };
	const struct ibnbd_disk_opts o = {
		.size = sizeof(o), .unflushed = IBNBD_DISK_UNFLUSHED_IGNORE,
	};
	struct ibnbd_disk_info info = { .size = sizeof(info) };
	int read, depth, count, timeout = -1, in_place = 0, i;
	struct ibnbd_req *go[DEPTH];
	char why[IBTRS_WHY_LEN] = "";
	struct ibnbd_disk *disk;
	struct ibtrs_ctx *ctx;
	uint64_t begin;
	uint8_t *data;
	uint32_t len;

	if (argc < 7)
		return 2;
	read = !strcmp(argv[3], "read");
	len = (uint32_t)atoi(argv[4]) << 10;
	depth = atoi(argv[5]);
	count = atoi(argv[6]);
	for (i = 7; i < argc; i++) {
		timeout = strcmp(argv[i], "poll") ? timeout : 0;
		in_place |= !strcmp(argv[i], "in-place");
	}
	if (depth < 1 || depth > DEPTH || ibtrs_ctx_new(&ctx, &co) ||
	    ibnbd_disk_open(ctx, argv[1], (const char *const *)&argv[2], 1, &session, &o, &disk,
			    why))
		return fprintf(stderr, "%s\n", why), 1;
	ibnbd_disk_info(disk, &info);
	data = aligned_alloc(4096, (size_t)depth * len);
	memset(data, 1, (size_t)depth * len);
	if (in_place && ibtrs_clt_mem_add(ibnbd_disk_session(disk), data, (size_t)depth * len,
					  IBTRS_MEM_READ, why))
		return fprintf(stderr, "%s\n", why), 1;
	for (i = 0; i < depth; i++) {
		req[i].op = read ? IBNBD_REQ_READ : IBNBD_REQ_WRITE;
		req[i].len = len;
		req[i].data = data + (size_t)i * len;
	}
	if (run(ibnbd_disk_q(disk, 0), go, depth, depth * 4, info.bytes / len, timeout))
		return fprintf(stderr, "a request has failed\n"), 1;
	begin = now_ns();
	if (run(ibnbd_disk_q(disk, 0), go, depth, count, info.bytes / len, timeout))
		return fprintf(stderr, "a request has failed\n"), 1;
	printf("%llu\n", (unsigned long long)(now_ns() - begin));
	ibnbd_disk_close(disk);
	return ibtrs_ctx_free(ctx);
}
