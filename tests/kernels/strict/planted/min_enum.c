// SPDX-License-Identifier: GPL-2.0-only
/* says: is signed, the other one is not */
enum left { NOTHING, READS, WRITES };

enum left planted_min_enum(enum left left, bool write);
enum left planted_min_enum(enum left left, bool write)
{
	return max(left, write ? WRITES : READS);
}
