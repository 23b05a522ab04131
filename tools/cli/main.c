// SPDX-License-Identifier: GPL-2.0-only
/* The command `ibnbd`: mappings, sessions and exports, as people see them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/out/escape.h"

int main(int argc, char **argv)
{
	const char **words __free(free) = say_alloc(((size_t)argc + 1) * sizeof(*words));
	struct cmd_args a = { 0 };
	int nr = argc > 0 ? argc - 1 : 0, rc;

	memcpy(words, argv + 1, (size_t)nr * sizeof(*words));
	escape_locale();
	rc = cmd_legacy(&nr, &words);
	rc = rc ? rc : cmd_parse(nr, words, &a);
	if (!rc && !ARG(&a, help))
		rc = a.cmd->run(&a);
	free(a.words);
	if (fflush(stdout) || ferror(stdout)) {
		if (errno != EPIPE)
			return say_error(SAY_FAILED, "cannot write the output: %s",
					 strerror(errno));
		rc = rc ? rc : SAY_FAILED;
	}
	return rc;
}
