// SPDX-License-Identifier: GPL-2.0-only
/* says: BUILD_BUG_ON failed */
u32 planted_clamp_turned(u32 a);
u32 planted_clamp_turned(u32 a)
{
	return clamp(a, 8u, 4u);
}
