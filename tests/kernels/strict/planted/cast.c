// SPDX-License-Identifier: GPL-2.0-only
/* says: cast between incompatible function types */
static void cast_work(unsigned long data)
{
}

work_func_t planted_cast(void);
work_func_t planted_cast(void)
{
	return (work_func_t)cast_work;
}
