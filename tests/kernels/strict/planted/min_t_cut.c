// SPDX-License-Identifier: GPL-2.0-only
/* says: does not fit */
u16 planted_min_t_cut(u16 a);
u16 planted_min_t_cut(u16 a)
{
	return min_t(u16, a, SZ_64K);
}
