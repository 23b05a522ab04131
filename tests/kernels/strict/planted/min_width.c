// SPDX-License-Identifier: GPL-2.0-only
/* says: comparison of distinct pointer types */
size_t planted_min_width(size_t a, u32 b);
size_t planted_min_width(size_t a, u32 b)
{
	return min(a, b);
}
