// SPDX-License-Identifier: GPL-2.0-only
/* says: this statement may fall through */
int planted_fallthrough(int a);
int planted_fallthrough(int a)
{
	switch (a) {
	case 1:
		a++;
		/* as a comment it counts no more */
	default:
		return a;
	}
}
