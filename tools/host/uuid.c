// SPDX-License-Identifier: GPL-2.0-only
#include <blkid.h>
#include <stdlib.h>
#include <strings.h>
#include "tools/host/mapping.h"
#include "tools/out/say.h"

char *mapping_wrong_uuid(const struct state_dev *d, const char *want)
{
	char *path = sysfs_root(d->path);
	blkid_probe probe = blkid_new_probe_from_filename(path);
	const char *found = NULL, *table = NULL;
	char *why = NULL;

	free(path);
	if (!probe)
		return say_fmt("it cannot be read");
	blkid_probe_enable_partitions(probe, 1);
	if (blkid_do_safeprobe(probe) < 0) {
		why = say_fmt("it cannot be read, or holds signs of several file systems");
	} else {
		blkid_probe_lookup_value(probe, "UUID", &found, NULL);
		blkid_probe_lookup_value(probe, "PTUUID", &table, NULL);
		if (!(found && !strcasecmp(found, want)) && !(table && !strcasecmp(table, want)))
			why = found || table ? say_fmt("its UUID is %s, maps.conf says %s",
						       found ? found : table, want) :
					       say_fmt("it has no UUID, maps.conf says %s", want);
	}
	blkid_free_probe(probe);
	return why;
}
