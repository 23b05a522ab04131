/* SPDX-License-Identifier: GPL-2.0-only */
/* mark start|stop: the two instructions that profile.c looks for. */
#include <string.h>

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "start"))
		asm volatile(".byte 0x0f, 0x1f, 0x80, 0x78, 0x56, 0x34, 0x12");
	else if (argc == 2 && !strcmp(argv[1], "stop"))
		asm volatile(".byte 0x0f, 0x1f, 0x80, 0x79, 0x56, 0x34, 0x12");
	else
		return 2;
	return 0;
}
