/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * QEMU plugin: how often each block of guest instructions ran between two marks. Exact, and the
 * guest does not notice.
 *
 * The marks are two no-operations that `mark` (mark.c) executes in the guest: nopl 0x12345678(%rax)
 * zeroes the counts, nopl 0x12345679(%rax) writes them to the file named by out=: "address
 * instructions times" per line. What ran in user space is one line with address 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include "plugin.h"

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  void (*cb)(unsigned int, void *), int flags, void *data);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);

struct block {
	uint64_t addr, len, times;
	struct block *next;
};

static struct block *blocks;
static struct block user;	/* all of it: an instruction each time */
static const char *out = "profile.out";

static void mark_start(unsigned int cpu, void *data)
{
	struct block *b;

	user.times = 0;
	for (b = blocks; b; b = b->next)
		b->times = 0;
}

static void mark_stop(unsigned int cpu, void *data)
{
	FILE *f = fopen(out, "w");
	struct block *b;

	if (!f) {
		perror(out);
		return;
	}
	fprintf(f, "0 1 %lu\n", user.times);
	for (b = blocks; b; b = b->next)
		if (b->times)
			fprintf(f, "%lx %lu %lu\n", b->addr, b->len, b->times);
	fclose(f);
}

static void ran(unsigned int cpu, void *data)
{
	((struct block *)data)->times++;
}

static void ran_in_user_space(unsigned int cpu, void *data)
{
	user.times += (uintptr_t)data;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), i;
	uint64_t addr = qemu_plugin_tb_vaddr(tb);
	struct block *b;

	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		int mark = is_mark(insn);

		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn,
							       mark == 1 ? mark_start : mark_stop,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
	if (!(addr >> 63)) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, ran_in_user_space, QEMU_PLUGIN_CB_NO_REGS,
						     (void *)n);
		return;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		abort();
	b->addr = addr;
	b->len = n;
	b->next = blocks;
	blocks = b;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, ran, QEMU_PLUGIN_CB_NO_REGS, b);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
			       int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
