// SPDX-License-Identifier: GPL-2.0-only
/* The table of commands.h. */
#include "tools/cmd/cmd.h"

#define ANY	((size_t)-1)
#define O(id)	CMD_BIT(id)

#define COMMAND(...) { __VA_ARGS__ },
static const struct cmd commands[] = {
#include "tools/cli/commands.h"
};

const struct cmd *cmd_table(size_t *nr)
{
	*nr = ARRAY_SIZE(commands);
	return commands;
}
