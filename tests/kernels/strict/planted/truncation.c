// SPDX-License-Identifier: GPL-2.0-only
/* says: directive output truncated */
void planted_truncation(char *to, int a);
void planted_truncation(char *to, int a)
{
	snprintf(to, 4, "number %d", a);
}
