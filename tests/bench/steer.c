/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * steer DEVICE QPN..: deliver what comes for the first queue pair to CPU 0, for the second one to
 * CPU 1 and so on, until it is killed. It says "steers" when it does.
 *
 * An adapter has a completion queue for each CPU; the network card of an emulated machine has one
 * queue, and soft-RoCE handles a packet where it comes in. An XDP program takes that card's place:
 * it looks for the queue pair of a RoCEv2 packet (IPv4, no options) and redirects to the CPU's part
 * of a cpumap. All else goes on as it came.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QPS	64
#define QUEUE	2048		/* packets that wait for a CPU */
#define ROCE	4791		/* port of RoCEv2 */

/* Offsets in a packet: Ethernet 14, IPv4 20, UDP 8, then the base transport header. */
enum { AT_TYPE = 12, AT_PROTO = 23, AT_PORT = 36, AT_QP = 46, AT_END = 54 };

#define INSN(c, d, s, o, i) ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), \
						.off = (o), .imm = (i) })
#define LOAD(size, d, s, o)	INSN(BPF_LDX | (size) | BPF_MEM, d, s, o, 0)
#define SET(d, i)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define COPY(d, s)		INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define ADD(d, i)		INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define AND(d, i)		INSN(BPF_ALU64 | BPF_AND | BPF_K, d, 0, 0, i)
#define HOST32(d)		INSN(BPF_ALU | BPF_END | BPF_TO_BE, d, 0, 0, 32)
#define GO(o)			INSN(BPF_JMP | BPF_JA, 0, 0, o, 0)
#define GO_UNLESS(d, i, o)	INSN(BPF_JMP | BPF_JNE | BPF_K, d, 0, o, i)
#define GO_ABOVE(d, s, o)	INSN(BPF_JMP | BPF_JGT | BPF_X, d, s, o, 0)
#define CALL(f)			INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT()			INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static char log_text[65536];

static void die(const char *what)
{
	fprintf(stderr, "steer: %s: %s\n%s", what, strerror(errno), log_text);
	exit(1);
}

static int bpf(int cmd, union bpf_attr *attr, const char *what)
{
	long rc = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	if (rc < 0)
		die(what);
	return (int)rc;
}

static int make_map(int cpus)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_CPUMAP, .key_size = 4, .value_size = 4,
		.max_entries = (unsigned int)cpus,
	};
	int fd = bpf(BPF_MAP_CREATE, &attr, "no cpumap");
	uint32_t cpu, size = QUEUE;

	for (cpu = 0; cpu < (uint32_t)cpus; cpu++) {
		union bpf_attr set = {
			.map_fd = (unsigned int)fd, .key = (uintptr_t)&cpu,
			.value = (uintptr_t)&size,
		};

		bpf(BPF_MAP_UPDATE_ELEM, &set, "no queue of a CPU");
	}
	return fd;
}

static int make_program(int map, char **qpns, int n)
{
	struct bpf_insn p[32 + 3 * QPS];
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_XDP };
	int i, at = 0, pass, jumps[4], to_redirect[QPS];

	p[at++] = LOAD(BPF_W, 2, 1, offsetof(struct xdp_md, data));
	p[at++] = LOAD(BPF_W, 3, 1, offsetof(struct xdp_md, data_end));
	p[at++] = COPY(4, 2);
	p[at++] = ADD(4, AT_END);
	p[jumps[0] = at++] = GO_ABOVE(4, 3, 0);
	p[at++] = LOAD(BPF_H, 4, 2, AT_TYPE);
	p[jumps[1] = at++] = GO_UNLESS(4, htons(0x0800), 0);
	p[at++] = LOAD(BPF_B, 4, 2, AT_PROTO);
	p[jumps[2] = at++] = GO_UNLESS(4, IPPROTO_UDP, 0);
	p[at++] = LOAD(BPF_H, 4, 2, AT_PORT);
	p[jumps[3] = at++] = GO_UNLESS(4, htons(ROCE), 0);
	p[at++] = LOAD(BPF_W, 4, 2, AT_QP);
	p[at++] = HOST32(4);
	p[at++] = AND(4, 0xffffff);
	for (i = 0; i < n; i++) {
		p[at++] = GO_UNLESS(4, atoi(qpns[i]), 2);
		p[at++] = SET(2, i);
		p[to_redirect[i] = at++] = GO(0);
	}
	pass = at;
	p[at++] = SET(0, XDP_PASS);
	p[at++] = EXIT();
	for (i = 0; i < 4; i++)
		p[jumps[i]].off = (int16_t)(pass - jumps[i] - 1);
	for (i = 0; i < n; i++)
		p[to_redirect[i]].off = (int16_t)(at - to_redirect[i] - 1);
	p[at++] = INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map);
	p[at++] = INSN(0, 0, 0, 0, 0);
	p[at++] = SET(3, XDP_PASS);
	p[at++] = CALL(BPF_FUNC_redirect_map);
	p[at++] = EXIT();

	attr.insns = (uintptr_t)p;
	attr.insn_cnt = (unsigned int)at;
	attr.license = (uintptr_t)"GPL";
	attr.log_buf = (uintptr_t)log_text;
	attr.log_size = sizeof(log_text);
	attr.log_level = 1;
	return bpf(BPF_PROG_LOAD, &attr, "the program is refused");
}

int main(int argc, char **argv)
{
	union bpf_attr attr = { .link_create = { .attach_type = BPF_XDP,
						 .flags = XDP_FLAGS_SKB_MODE } };
	int n = argc - 2;

	if (n < 1 || n > QPS) {
		fprintf(stderr, "steer DEVICE QPN..\n");
		return 2;
	}
	attr.link_create.target_ifindex = if_nametoindex(argv[1]);
	if (!attr.link_create.target_ifindex)
		die(argv[1]);
	attr.link_create.prog_fd = (unsigned int)make_program(make_map(n), argv + 2, n);
	bpf(BPF_LINK_CREATE, &attr, argv[1]);
	puts("steers");
	fflush(stdout);
	for (;;)
		pause();
}
