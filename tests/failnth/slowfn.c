// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-slowfn: makes a function of the kernel take longer, for races that need one CPU to stand
 * still at a certain place, as an emulated one does when its host is busy. `func` says which, at
 * load; `ms` is how long each call waits before it begins, 0 = not, with interrupts off; `hits`
 * counts the calls that did.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static char *func = "";
module_param(func, charp, 0444);

static unsigned int ms;
module_param(ms, uint, 0644);

static unsigned int hits;
module_param(hits, uint, 0444);

static int slow_pre(struct kprobe *p, struct pt_regs *regs)
{
	unsigned int wait = READ_ONCE(ms);

	if (wait) {
		WRITE_ONCE(hits, hits + 1);
		mdelay(wait);
	}
	return 0;
}

static struct kprobe probe = { .pre_handler = slow_pre };

static int __init slow_init(void)
{
	probe.symbol_name = func;
	return register_kprobe(&probe);
}

static void __exit slow_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(slow_init);
module_exit(slow_exit);
MODULE_DESCRIPTION("a function of the kernel that takes longer, for tests");
MODULE_LICENSE("GPL");
