// SPDX-License-Identifier: GPL-2.0-only
/* says: the frame size of */
void planted_frame(void (*fill)(char *));
void planted_frame(void (*fill)(char *))
{
	char buf[1200];

	fill(buf);
}
