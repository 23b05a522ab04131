// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-failnth: makes the n-th memory allocation of some modules fail, once or again and again.
 *
 * Two functions of the kernel are there to be overruled: should_failslab() and
 * should_fail_alloc_page(), which every allocation asks, with and without fault injection in the
 * kernel's configuration. Probes on them look whether one of the functions that led here lies in a
 * given range of addresses, count, and let the n-th call answer "fail". Allocations that must not
 * fail (__GFP_NOFAIL) are left alone.
 *
 * Parameters, in /sys/module/ibnbd_failnth/parameters:
 *	range	START,END[,START,END]..	whose allocations: addresses of modules' text
 *	depth	how many callers up the stack are looked at
 *	first	count only the first so many allocations on behalf of each place in those ranges, 0
 *		= all: a sweep then ends in minutes
 *	again	let every N-th fail, not only the first of them
 *	noio	let none fail, but look for those that might wait for I/O
 *	nth	write N to count from now on and let the N-th fail; 0 ends it
 *	seen	how many there were since
 *	hit	who asked for the one that failed, or the first of them, or of those that might
 *		wait; empty while there is none
 *
 * The probes are only there while nth is not 0, since each costs a trap and a stack trace for every
 * allocation of the machine.
 */
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/stacktrace.h>

#define FRAMES		64
#define RANGES		8
#define PLACES		1024
#define ENTRY_BYTES	64	/* the probed address lies so near to what the trace shows */

static unsigned long range[2 * RANGES];
static unsigned int nr_range;
module_param_array(range, ulong, &nr_range, 0644);

static unsigned int depth = 12;
module_param(depth, uint, 0644);

static unsigned int first;
module_param(first, uint, 0644);

static bool again;
module_param(again, bool, 0644);

static bool noio;
module_param(noio, bool, 0644);

static DEFINE_MUTEX(arm_lock);
static unsigned int nth;
static atomic_t seen;
static atomic_t waits;			/* of those that might */
static unsigned long hit[FRAMES];
static unsigned int nr_hit;
static unsigned long places[PLACES];	/* that have asked since; 0 ends them */
static atomic_t asked[PLACES];		/* how often */

static bool fail_ours(unsigned long address)
{
	unsigned int i;

	for (i = 0; i + 1 < nr_range; i += 2)
		if (address >= range[i] && address < range[i + 1])
			return true;
	return false;
}

/* No lock: a probe may come at any time, as an NMI does. */
static bool fail_counts(unsigned long place)
{
	unsigned long old;
	unsigned int i;

	for (i = 0; i < PLACES; i++) {
		old = cmpxchg(&places[i], 0, place);
		if (!old || old == place)
			return atomic_inc_return(&asked[i]) <= first;
	}
	return false;
}

/* May it wait until something has been written to a disk? */
static bool fail_might_wait(gfp_t gfp)
{
	return gfp & __GFP_DIRECT_RECLAIM && gfp & __GFP_IO &&
	       !(current->flags & (PF_MEMALLOC | PF_MEMALLOC_NOIO));
}

/* Is it theirs, and its turn? */
static bool fail_now(unsigned long probed, gfp_t gfp)
{
	unsigned long trace[FRAMES];
	unsigned int i, n, top, now, every;

	n = stack_trace_save(trace, FRAMES, 0);
	/* above is how the trap got here */
	for (top = 0; top < n && trace[top] - probed >= ENTRY_BYTES; top++)
		;
	for (i = top + 1; i < n && i <= top + depth; i++)
		if (fail_ours(trace[i]))
			break;
	if (i >= n || i > top + depth || (first && !fail_counts(trace[i])))
		return false;
	now = atomic_inc_return(&seen);
	every = READ_ONCE(nth);
	if (READ_ONCE(noio)) {
		if (!fail_might_wait(gfp) || atomic_inc_return(&waits) != 1)
			return false;
	} else if (now != every) {	/* while it is being armed or ended there is no n-th */
		return READ_ONCE(again) && every && now % every == 0;
	}
	n = min(n - top, depth + 1);
	memcpy(hit, trace + top, n * sizeof(hit[0]));
	smp_store_release(&nr_hit, n);
	return !READ_ONCE(noio);
}

/* Nothing but its return instruction. */
static noinline notrace void fail_return(void)
{
	asm volatile("");
}

/*
 * Return from the probed function before it has begun: the stack is as its caller left it, so any
 * return will do. The stack pointer itself cannot be changed where the probe is a call from the
 * function's entry.
 */
static int fail_with(struct pt_regs *regs, long value)
{
	regs_set_return_value(regs, value);
	instruction_pointer_set(regs, (unsigned long)fail_return);
	return 1;
}

static int fail_slab(struct kprobe *p, struct pt_regs *regs)
{
	gfp_t gfp = (__force gfp_t)regs_get_kernel_argument(regs, 1);

	if (gfp & __GFP_NOFAIL || !fail_now((unsigned long)p->addr, gfp))
		return 0;
	return fail_with(regs, -ENOMEM);
}

static int fail_page(struct kprobe *p, struct pt_regs *regs)
{
	gfp_t gfp = (__force gfp_t)regs_get_kernel_argument(regs, 0);

	if (gfp & __GFP_NOFAIL || !fail_now((unsigned long)p->addr, gfp))
		return 0;
	return fail_with(regs, true);
}

/* A probe that has one is never turned into a jump, which could not change the flow. */
static void fail_after(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe probes[] = {
	{ .symbol_name = "should_failslab", .pre_handler = fail_slab, .post_handler = fail_after },
	{ .symbol_name = "should_fail_alloc_page", .pre_handler = fail_page,
	  .post_handler = fail_after },
};

static void fail_disarm(void)
{
	unsigned int i;

	if (!nth)
		return;
	nth = 0;
	for (i = 0; i < ARRAY_SIZE(probes); i++)
		unregister_kprobe(&probes[i]);
}

static int fail_arm(unsigned int n)
{
	unsigned int i;
	int err = 0;

	atomic_set(&seen, 0);
	atomic_set(&waits, 0);
	nr_hit = 0;
	memset(places, 0, sizeof(places));
	memset(asked, 0, sizeof(asked));
	for (i = 0; i < ARRAY_SIZE(probes) && !err; i++) {
		/* what an earlier registration left in it */
		probes[i].addr = NULL;
		probes[i].flags = 0;
		err = register_kprobe(&probes[i]);
	}
	if (!err) {
		WRITE_ONCE(nth, n);
		return 0;
	}
	for (i--; i-- > 0; )
		unregister_kprobe(&probes[i]);
	return err;
}

static int nth_set(const char *val, const struct kernel_param *kp)
{
	unsigned int n;
	int err;

	err = kstrtouint(val, 0, &n);
	if (err)
		return err;
	mutex_lock(&arm_lock);
	fail_disarm();
	if (n)
		err = fail_arm(n);
	mutex_unlock(&arm_lock);
	return err;
}

static int nth_get(char *buf, const struct kernel_param *kp)
{
	return sprintf(buf, "%u\n", nth);
}

static const struct kernel_param_ops nth_ops = { .set = nth_set, .get = nth_get };
module_param_cb(nth, &nth_ops, NULL, 0644);

static int seen_get(char *buf, const struct kernel_param *kp)
{
	return sprintf(buf, "%d\n", atomic_read(&seen));
}

static const struct kernel_param_ops seen_ops = { .get = seen_get };
module_param_cb(seen, &seen_ops, NULL, 0444);

static int hit_get(char *buf, const struct kernel_param *kp)
{
	unsigned int i, n = smp_load_acquire(&nr_hit);
	int len = 0;

	for (i = 0; i < n; i++)
		len += scnprintf(buf + len, PAGE_SIZE - len, "%pS\n", (void *)hit[i]);
	return len;
}

static const struct kernel_param_ops hit_ops = { .get = hit_get };
module_param_cb(hit, &hit_ops, NULL, 0444);

static int __init failnth_init(void)
{
	return 0;
}

static void __exit failnth_exit(void)
{
	mutex_lock(&arm_lock);
	fail_disarm();
	mutex_unlock(&arm_lock);
}

module_init(failnth_init);
module_exit(failnth_exit);
MODULE_DESCRIPTION("Fails the n-th memory allocation of chosen modules, for tests");
MODULE_LICENSE("GPL");
