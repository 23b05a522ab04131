// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-planted: bugs for the checkers of the debug kernels to find, one of each kind. Write a
 * bug's name to the parameter "bug". tests/vm/planted-debug has the cases; nothing else loads it.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#define LEAKS		16	/* one may be taken for referenced by what is left on a stack */
#define RACE_MS		8000

static DEFINE_MUTEX(lock_a);
static DEFINE_MUTEX(lock_b);
static DEFINE_SPINLOCK(spin);
static int __rcu *protected;
static unsigned long shared;

static void bug_rcu(void)		/* PROVE_RCU */
{
	int *p = rcu_dereference(protected);

	pr_info("%d\n", !!p);
}

static void bug_sleep(void)		/* DEBUG_ATOMIC_SLEEP */
{
	spin_lock(&spin);
	might_sleep();
	spin_unlock(&spin);
}

static void bug_shift(void)		/* UBSAN */
{
	int by = 77;

	OPTIMIZER_HIDE_VAR(by);
	pr_info("%d\n", 1 << by);
}

static void timer_fn(struct timer_list *timer)
{
}

static void bug_object(void)		/* DEBUG_OBJECTS_FREE: a timer that runs is freed */
{
	struct timer_list *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, timer_fn, 0);
	mod_timer(timer, jiffies + 1000 * HZ);
	kfree(timer);
}

static void bug_dma(void)		/* DMA_API_DEBUG: unmapped with another size */
{
	struct pci_dev *dev = NULL;
	void *p = kzalloc(512, GFP_KERNEL);
	dma_addr_t addr;

	dev = pci_get_device(PCI_ANY_ID, PCI_ANY_ID, NULL);
	if (!dev || !p)
		goto out;
	addr = dma_map_single(&dev->dev, p, 512, DMA_TO_DEVICE);
	if (!dma_mapping_error(&dev->dev, addr))
		dma_unmap_single(&dev->dev, addr, 256, DMA_TO_DEVICE);
out:
	pci_dev_put(dev);
	kfree(p);
}

static void bug_order(void)		/* PROVE_LOCKING */
{
	mutex_lock(&lock_a);
	mutex_lock(&lock_b);
	mutex_unlock(&lock_b);
	mutex_unlock(&lock_a);

	mutex_lock(&lock_b);
	mutex_lock(&lock_a);
	mutex_unlock(&lock_a);
	mutex_unlock(&lock_b);
}

static void bug_free(void)		/* KASAN */
{
	int *p = kzalloc(64, GFP_KERNEL), *same = p;

	OPTIMIZER_HIDE_VAR(same);
	kfree(p);
	if (same)
		pr_info("%d\n", READ_ONCE(*same));
}

static void bug_leak(void)		/* DEBUG_KMEMLEAK */
{
	void *p;
	int i;

	for (i = 0; i < LEAKS; i++) {
		p = kmalloc(192, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(p);
	}
}

static int racer(void *end)
{
	while (!kthread_should_stop()) {
		shared++;
		cond_resched();
	}
	return 0;
}

static void bug_race(void)		/* KCSAN */
{
	struct task_struct *t[2];
	int i;

	for (i = 0; i < 2; i++)
		t[i] = kthread_run(racer, NULL, "planted-race");
	msleep(RACE_MS);
	for (i = 0; i < 2; i++)
		if (!IS_ERR(t[i]))
			kthread_stop(t[i]);
}

static const struct {
	const char *name;
	void (*plant)(void);
} bugs[] = {
	{ "rcu", bug_rcu }, { "sleep", bug_sleep }, { "shift", bug_shift },
	{ "object", bug_object }, { "dma", bug_dma },
	{ "order", bug_order }, { "free", bug_free }, { "leak", bug_leak }, { "race", bug_race },
};

static int bug_set(const char *val, const struct kernel_param *kp)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++) {
		if (sysfs_streq(val, bugs[i].name)) {
			bugs[i].plant();
			return 0;
		}
	}
	return -EINVAL;
}

static const struct kernel_param_ops bug_ops = { .set = bug_set };
module_param_cb(bug, &bug_ops, NULL, 0200);

static int __init planted_init(void)
{
	return 0;
}

static void __exit planted_exit(void)
{
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("Bugs that the checkers of the debug kernels must find");
MODULE_LICENSE("GPL");
