// SPDX-License-Identifier: GPL-2.0-only
/* says: section mismatch */
static noinline int __init section_once(int a)
{
	int i;

	for (i = 0; i < a; i++)
		pr_info("%d of %d\n", i, a);
	return i;
}

int planted_section(int a);
int planted_section(int a)
{
	return section_once(a);
}

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("what is freed after the start is called later");
