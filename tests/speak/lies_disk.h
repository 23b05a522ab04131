/* SPDX-License-Identifier: GPL-2.0-only */
/* The disks of ibnbd-lies, and its answers to messages of the block protocol. Under lies_lock. */
#ifndef TESTS_SPEAK_LIES_DISK_H
#define TESTS_SPEAK_LIES_DISK_H

#include <linux/module.h>
#include <linux/sizes.h>
#include "ibnbd/proto/msg.h"
#include "tests/speak/chance.h"

#define IO_SIZE	 SZ_16K		/* more than a bounce buffer takes: there are reads of both kinds */
#define STEADY_ID 1

static bool steady;
module_param(steady, bool, 0444);
static unsigned int grow, lacking, wrong, wrong_errno = ENOTCONN, wrong_op = IBNBD_OP_MASK;
module_param(grow, uint, 0644);
module_param(lacking, uint, 0644);
module_param(wrong, uint, 0644);
module_param(wrong_errno, uint, 0644);
module_param(wrong_op, uint, 0644);
static u64 sectors = 2048;		/* steady */

static struct ibnbd_open_rsp lies_steady_disk(void)
{
	sectors += grow || wrong ? SZ_4K >> SECTOR_SHIFT : 0;
	grow -= !!grow;
	return (struct ibnbd_open_rsp){
		.device_id = STEADY_ID,
		.nsectors = sectors,
		.max_hw_sectors = IO_SIZE >> SECTOR_SHIFT,
		.physical_block_size = 4096,
		.logical_block_size = 512,
		.max_segments = IO_SIZE / SZ_4K,
		.writeback = true,
		.has_identity = true,
		.identity = { .kind = IBNBD_ID_FILE, .id = { 1 } },
	};
}

static struct ibnbd_open_rsp lies_any_disk(void)
{
	return (struct ibnbd_open_rsp){
		.device_id = any(4),
		.nsectors = any(2) ? 2048 : prandom_u32_state(&rnd),
		.max_hw_sectors = IO_SIZE >> SECTOR_SHIFT,
		.max_write_zeroes_sectors = any(3) * 8,
		.max_discard_sectors = any(3) * 8,
		.discard_granularity = 4096,
		.physical_block_size = 4096,
		.logical_block_size = 512,
		.max_segments = 2,
		.fua = any(2),
		.writeback = any(2),
		.has_identity = true,
		.identity = { .kind = any(4), .flags = any(8), .io_opt = any(3) << any(32) },
		.has_durability = true,
		.durability = { .cache_epoch = any(3), .flags = any(2) },
	};
}

static u32 lies_block_answer(const void *usr, u32 usr_len, u32 len, void *out)
{
	const u64 features = steady ? IBNBD_FEAT_IDENTITY : any(16);
	const struct ibnbd_sess_info info = { .version = 2, .features = features };
	struct ibnbd_open_rsp open;
	const char *why;

	switch (ibnbd_msg_type(usr, usr_len, &why)) {
	case IBNBD_MSG_SESS_INFO:
		ibnbd_msg_sess_info_encode(out, IBNBD_MSG_SESS_INFO_RSP, &info);
		break;
	case IBNBD_MSG_OPEN:
		open = steady ? lies_steady_disk() : lies_any_disk();
		if (chance(2))
			ibnbd_msg_open_refused_encode(out, -(int)any(600), "\x1b[2J%s%n");
		else
			ibnbd_msg_open_rsp_encode(out, &open);
		break;
	default:
		prandom_bytes_state(&rnd, out, min_t(u32, len, 64));
		return len - min(len, lacking);
	}
	return len;
}

static bool lies_wrong(const struct ibnbd_wire_io *m, u32 len)
{
	const char *why;
	u32 op;

	if (!wrong || ibnbd_msg_type(m, len, &why) != IBNBD_MSG_IO)
		return false;
	op = le32_to_cpu(m->rw) & IBNBD_OP_MASK;
	if (wrong_op != IBNBD_OP_MASK && op != wrong_op)
		return false;
	wrong--;
	return true;
}

#endif
