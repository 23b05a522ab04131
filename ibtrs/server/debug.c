// SPDX-License-Identifier: GPL-2.0-only
#include <linux/debugfs.h>
#include "ibtrs/server/debug.h"

DEFINE_STATIC_KEY_FALSE(ibtrs_srv_no_fence);
bool ibtrs_srv_debug_shared_chunks;
bool ibtrs_srv_debug_plain;

static struct dentry *debug_dir;

static int debug_no_fence_get(void *data, u64 *val)
{
	*val = static_key_enabled(&ibtrs_srv_no_fence);
	return 0;
}

static int debug_no_fence_set(void *data, u64 val)
{
	if (val) {
		pr_warn("fences are off: for tests, data will be destroyed\n");
		static_branch_enable(&ibtrs_srv_no_fence);
	} else {
		static_branch_disable(&ibtrs_srv_no_fence);
	}
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(debug_no_fence, debug_no_fence_get, debug_no_fence_set, "%llu\n");

void ibtrs_srv_debug_init(void)
{
	debug_dir = debugfs_create_dir("ibtrs-server", NULL);
	debugfs_create_file_unsafe("no_fence", 0600, debug_dir, NULL, &debug_no_fence);
	debugfs_create_bool("shared_chunks", 0600, debug_dir, &ibtrs_srv_debug_shared_chunks);
	debugfs_create_bool("plain", 0600, debug_dir, &ibtrs_srv_debug_plain);
}

void ibtrs_srv_debug_exit(void)
{
	debugfs_remove_recursive(debug_dir);
}
