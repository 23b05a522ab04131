// SPDX-License-Identifier: GPL-2.0-only
/* says: variable length array|braced-group within expression */
u32 planted_min_constant(void);
u32 planted_min_constant(void)
{
	u32 a[min(2u, 4u)] = {};

	return a[1];
}
