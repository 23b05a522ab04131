/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * QEMU plugin: cache lines that change hands between the guest's CPUs, between two marks (mark.c).
 *
 * Each CPU has a cache without end, and a line is held by whoever looked at it since it was last
 * written. A load moves a line that another CPU has modified, a store one that any other CPU holds;
 * that is what the interconnect of a real machine would carry, but for what its caches forget, and
 * for false sharing with the prefetcher. Accesses that cross a line count for the first one.
 *
 * From the first mark on lines are followed; it zeroes the counts, so a second one of it begins to
 * count where who has what is known. At the other one the file named by out= gets
 *
 *	I address moved		an instruction, and how many lines it moved
 *	L address moved pc	a line, by its physical address, how often, and what moved it last
 *
 * CPUs of the guest run in threads of their own: what a line's record says may be overtaken between
 * a look at it and a change, which costs a count now and then.
 *
 * The host has fewer CPUs than the guest, as a rule, and gives each thread some milliseconds at a
 * time: a line that all CPUs of a real machine fight for would move once in a millisecond, and how
 * often would be the host's choice. So a thread yields after turn= accesses (TURN by default), some
 * microseconds of a real CPU, and the CPUs of the guest run side by side as nearly as threads can.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "plugin.h"

typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_hwaddr;
enum { QEMU_PLUGIN_MEM_RW = 3 };
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*cb)(unsigned int, qemu_plugin_meminfo_t, uint64_t,
						 void *),
				      int flags, int rw, void *data);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
_Bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
_Bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *hwaddr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *hwaddr);

#define LINE_SHIFT	6
#define LINES		(1ul << 27)	/* of 8 GiB of guest memory */
#define MODIFIED	0x8000		/* beside a bit for each of CPUS that hold the line */
#define CPUS		15
#define TURN		300
#define LINE_HOT	10		/* fewer moves are not worth a row */

struct site {
	uint64_t addr, moved;
	struct site *next;
};

static struct site *sites;
static uint16_t *holders;		/* by line */
static uint32_t *moves;			/* by line, between the marks */
static struct site **last;		/* by line: who moved it */
static int counting;
static struct {				/* by CPU, on a line of its own */
	unsigned int accesses;
} __attribute__((aligned(64))) turns[CPUS];
static unsigned int turn = TURN;
static const char *out = "lines.out";

static void mark_start(unsigned int cpu, void *data)
{
	struct site *s;

	for (s = __atomic_load_n(&sites, __ATOMIC_ACQUIRE); s; s = s->next)
		s->moved = 0;
	madvise(moves, LINES * sizeof(*moves), MADV_DONTNEED);
	__atomic_store_n(&counting, 1, __ATOMIC_RELEASE);
}

static void mark_stop(unsigned int cpu, void *data)
{
	struct site *s;
	uint64_t i;
	FILE *f;

	__atomic_store_n(&counting, 0, __ATOMIC_RELEASE);
	f = fopen(out, "w");
	if (!f) {
		perror(out);
		return;
	}
	for (s = __atomic_load_n(&sites, __ATOMIC_ACQUIRE); s; s = s->next)
		if (s->moved)
			fprintf(f, "I %lx %lu\n", s->addr, s->moved);
	for (i = 0; i < LINES; i++)
		if (moves[i] >= LINE_HOT)
			fprintf(f, "L %lx %u %lx\n", i << LINE_SHIFT, moves[i], last[i]->addr);
	fclose(f);
}

static void accessed(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	struct qemu_plugin_hwaddr *hw;
	uint16_t me = 1u << cpu, was, now, others;
	struct site *s = data;
	uint64_t line;
	int moved;

	if (!__atomic_load_n(&counting, __ATOMIC_RELAXED))
		return;
	if (++turns[cpu].accesses >= turn) {
		turns[cpu].accesses = 0;
		sched_yield();
	}
	hw = qemu_plugin_get_hwaddr(info, vaddr);
	if (!hw || qemu_plugin_hwaddr_is_io(hw))
		return;
	line = qemu_plugin_hwaddr_phys_addr(hw) >> LINE_SHIFT;
	if (line >= LINES)
		return;
	was = __atomic_load_n(&holders[line], __ATOMIC_RELAXED);
	others = was & ~MODIFIED & ~me;
	if (qemu_plugin_mem_is_store(info)) {
		moved = !!others;
		now = me | MODIFIED;
	} else {
		moved = was & MODIFIED && !(was & me);
		now = moved ? (was | me) & ~MODIFIED : was | me;
	}
	if (now != was)
		__atomic_store_n(&holders[line], now, __ATOMIC_RELAXED);
	if (!moved)
		return;
	__atomic_fetch_add(&s->moved, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&moves[line], 1, __ATOMIC_RELAXED);
	__atomic_store_n(&last[line], s, __ATOMIC_RELAXED);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), i;

	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		struct site *s = calloc(1, sizeof(*s));
		int mark = is_mark(insn);

		if (!s)
			abort();
		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn,
							       mark == 1 ? mark_start : mark_stop,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		s->addr = qemu_plugin_insn_vaddr(insn);
		s->next = __atomic_load_n(&sites, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(&sites, &s->next, s, 1, __ATOMIC_RELEASE,
						    __ATOMIC_RELAXED))
			;
		qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, s);
	}
}

static void *array(size_t size)
{
	void *p = mmap(NULL, LINES * size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
			       int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
		else if (!strncmp(argv[i], "turn=", 5))
			turn = atoi(argv[i] + 5);
	holders = array(sizeof(*holders));
	moves = array(sizeof(*moves));
	last = array(sizeof(struct site *));
	if (!holders || !moves || !last || !turn)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
