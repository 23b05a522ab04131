// SPDX-License-Identifier: GPL-2.0-only
/* says: no previous prototype */
int planted_prototype(void)
{
	return 0;
}
