// SPDX-License-Identifier: GPL-2.0-only
/* resize: a device changes its size. */
#include <errno.h>
#include <stdlib.h>
#include "tools/cmd/cmd.h"
#include "tools/host/mapping.h"
#include "tools/out/table.h"

int cmd_resize_run(struct cmd_args *a)
{
	static const char file[] = "ibnbd/resize";
	char *why __free(free) = NULL, *text __free(free) = NULL, *old __free(free) = NULL,
	     *new __free(free) = NULL;
	struct state *s __free(state_free) = state_read();
	struct state_dev *d = state_dev(s, a->words[0], &why);
	struct settle *udev;
	int64_t bytes;
	bool barred;
	int err;

	if (!d) {
		say_error(SAY_NOTHING, "%s", why);
		return say_hint("ibnbd list");
	}
	if (!maps_size(a->words[1], &bytes) || bytes % 512 || !bytes) {
		say_error(SAY_USAGE, "resize: \"%s\" is not a size", a->words[1]);
		return say_hint(
			"bytes in steps of 512, or with K, M, G, T, P, E, or s for sectors: 10G, 20971520s");
	}
	old = table_size(d->size, false);
	new = table_size(bytes, false);
	if (bytes < d->size && !ARG(a, force)) {
		say_error(SAY_USAGE,
			  "resize: %s would shrink from %s to %s, and lose what is behind", d->path,
			  old, new);
		return say_hint("--force");
	}
	text = say_fmt("%lld", (long long)(bytes / 512));
	udev = settle_look(d->kname);
	err = sysfs_write(d->dir, file, text);
	settle_changed(udev, !err && bytes != d->size);
	if (!err && say_level >= 0 && !sysfs_dry_run)
		printf("%s: %s -> %s\n", d->path, old, new);
	if (!err)
		return SAY_DONE;
	barred = mapping_barred(d->dir, file, err);
	why = err == ENOENT && !barred ? say_dup("it is not open") :
					 mapping_reason(d->dir, file, err);
	say_error(0, "cannot resize %s: %s", d->path, why);
	if (barred)
		say_hint("%s", mapping_hint(d->dir, file, err));
	else if (err == ENOENT)
		say_hint("ibnbd remap %s", d->kname);
	return say_exit_of(err);
}
