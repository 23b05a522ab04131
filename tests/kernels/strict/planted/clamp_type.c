// SPDX-License-Identifier: GPL-2.0-only
/* says: clamp\(\): one of a and 1 is signed */
u32 planted_clamp_type(u32 a);
u32 planted_clamp_type(u32 a)
{
	return clamp(a, 1, 4);
}
