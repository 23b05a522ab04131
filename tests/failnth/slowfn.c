// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-slowfn: makes one function of the kernel, or two, take longer, for races that need a CPU to
 * stand still at a certain place, as an emulated one does when its host is busy. `func` says which,
 * at load; `ms` is how long each call waits before it begins, 0 = not, with interrupts off; `hits`
 * counts the calls that did. With two functions each has two values: func=one,two, ms 300,700.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

#define SLOW_MAX	2

static char *func[SLOW_MAX];
static int nr_func;
module_param_array(func, charp, &nr_func, 0444);

static unsigned int ms[SLOW_MAX];
module_param_array(ms, uint, NULL, 0644);

static unsigned int hits[SLOW_MAX];
module_param_array(hits, uint, &nr_func, 0444);

static struct kprobe probes[SLOW_MAX];

static int slow_pre(struct kprobe *p, struct pt_regs *regs)
{
	unsigned int wait = READ_ONCE(ms[p - probes]);

	if (wait) {
		WRITE_ONCE(hits[p - probes], hits[p - probes] + 1);
		mdelay(wait);
	}
	return 0;
}

static int __init slow_init(void)
{
	int i, err;

	for (i = 0; i < nr_func; i++) {
		probes[i].symbol_name = func[i];
		probes[i].pre_handler = slow_pre;
		err = register_kprobe(&probes[i]);
		if (err)
			goto unregister;
	}
	return 0;

unregister:
	while (i--)
		unregister_kprobe(&probes[i]);
	return err;
}

static void __exit slow_exit(void)
{
	int i;

	for (i = 0; i < nr_func; i++)
		unregister_kprobe(&probes[i]);
}

module_init(slow_init);
module_exit(slow_exit);
MODULE_DESCRIPTION("a function of the kernel that takes longer, for tests");
MODULE_LICENSE("GPL");
