/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the QEMU plugins of the bench share: the plugin API, and the marks that `mark` (mark.c)
 * executes in the guest.
 *
 * The API is declared here, since QEMU's header is packaged nowhere. Version 1 of it is what QEMU
 * 4.2 to 8.2 have; with PLUGIN_API=4 it is that of 9.2 to 10.0.
 */
#ifndef TESTS_BENCH_PLUGIN_H
#define TESTS_BENCH_PLUGIN_H

#ifndef PLUGIN_API
#define PLUGIN_API 1
#endif

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { QEMU_PLUGIN_CB_NO_REGS };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned int, void *),
					    int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
#if PLUGIN_API < 3
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
#else
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest, size_t len);
#endif
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = PLUGIN_API;

/* nopl 0x12345678(%rax): 0f 1f 80, then the displacement. 1, of ..79 2, of all else 0 */
static int is_mark(const struct qemu_plugin_insn *insn)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x80 }, tail[] = { 0x56, 0x34, 0x12 };
#if PLUGIN_API < 3
	const uint8_t *d = qemu_plugin_insn_data(insn);
#else
	uint8_t d[7];

	if (qemu_plugin_insn_data(insn, d, sizeof(d)) != sizeof(d))
		return 0;
#endif
	if (qemu_plugin_insn_size(insn) != 7 || memcmp(d, nop, 3) || memcmp(d + 4, tail, 3))
		return 0;
	return d[3] == 0x78 ? 1 : d[3] == 0x79 ? 2 : 0;
}

#endif
