// SPDX-License-Identifier: GPL-2.0-only
/* The program; the rest can be linked with a test. */
#include "ibnbd/user/serverd/serverd.h"

int main(int argc, char **argv)
{
	return serverd_main(argc, argv);
}
