// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose memory is it? For lines.py: what is known of physical addresses, a line in the kernel's log
 * for each.
 *
 *	echo 1a2b3c40,1a2b3c80 > /sys/module/ibnbd_whose/parameters/ask
 *	whose 1a2b3c40 ffff88801a2b3c40: CPU 2 at 1f40; module ffffffffc0801c40; kernel
 *	ffffffff821b3c40; slab kmalloc-1k start .. pointer offset 64 size 1024
 *
 * `CPU`: the address lies in what that CPU has of the per-CPU variables. `module`: it is mapped
 * among the modules. `kernel`: where the image's mapping has it, if it is in there. The rest is
 * what mem_dump_obj() says.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <asm/pgtable.h>

#define ASKED		64
#define PERCPU_SIZE	(1ul << 20)	/* more than the static ones take */
#define IMAGE_SIZE	(1ul << 27)

struct asked {
	unsigned long phys;
	unsigned long module;
};

/* one walk over a gigabyte of page tables, for all that is asked */
static void find_in_modules(struct asked *a, int n)
{
	unsigned long va;
	int i;

	for (va = MODULES_VADDR; va < MODULES_END; va += PAGE_SIZE) {
		struct page *page = vmalloc_to_page((void *)va);

		if (!(va & (SZ_16M - 1)))
			cond_resched();
		for (i = 0; page && i < n; i++)
			if (page_to_pfn(page) == PHYS_PFN(a[i].phys))
				a[i].module = va + offset_in_page(a[i].phys);
	}
}

static void tell(const struct asked *a)
{
	void *va = __va(a->phys);
	unsigned long image = a->phys - phys_base;
	unsigned int cpu;

	pr_info("whose %lx %lx:", a->phys, (unsigned long)va);
	for_each_possible_cpu(cpu) {
		unsigned long at = (unsigned long)va - per_cpu_offset(cpu);

		if (at < PERCPU_SIZE)
			pr_cont(" CPU %u at %lx;", cpu, at);
	}
	if (a->module)
		pr_cont(" module %lx;", a->module);
	if (image < IMAGE_SIZE)
		pr_cont(" kernel %lx;", image + __START_KERNEL_map);
	mem_dump_obj(va);
}

static int ask(const char *val, const struct kernel_param *kp)
{
	char *text = kstrdup(val, GFP_KERNEL), *rest = text, *word;
	struct asked *a = kcalloc(ASKED, sizeof(*a), GFP_KERNEL);
	int n = 0, i, ret = -ENOMEM;

	if (!text || !a)
		goto out;
	while ((word = strsep(&rest, ",\n")) && n < ASKED) {
		if (!*word)
			continue;
		ret = kstrtoul(word, 16, &a[n].phys);
		if (!ret && !pfn_valid(PHYS_PFN(a[n].phys)))
			ret = -ERANGE;
		if (ret)
			goto out;
		n++;
	}
	find_in_modules(a, n);
	for (i = 0; i < n; i++)
		tell(&a[i]);
	ret = 0;
out:
	kfree(a);
	kfree(text);
	return ret;
}

static const struct kernel_param_ops ops = { .set = ask };
module_param_cb(ask, &ops, NULL, 0200);
MODULE_PARM_DESC(ask, "physical addresses, hexadecimal, with commas between them");

MODULE_DESCRIPTION("whose memory is it: a test's helper");
MODULE_LICENSE("GPL");
