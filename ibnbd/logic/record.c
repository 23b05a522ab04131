// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibnbd/logic/record.h"

#define RECORD_KEY	0x69626e62642d7772ULL

static const char *const record_header_text[IBNBD_RECORD_TABLES] = {
	"ibnbd-server: who wrote last, 1\n",
	"ibnbd-server: cache epochs, 1\n",
};

__le64 ibnbd_record_sum(const struct ibnbd_record_slot *s)
{
	return cpu_to_le64(ibnbd_siphash(
		&s->kind, sizeof(*s) - offsetof(struct ibnbd_record_slot, kind), RECORD_KEY, 1));
}

void ibnbd_record_header(enum ibnbd_record_table t, struct ibnbd_record_slot *s)
{
	memset(s, 0, sizeof(*s));
	memcpy(s, record_header_text[t], strlen(record_header_text[t]));
}

u64 ibnbd_record_boot(const char *id)
{
	u64 boot = ibnbd_siphash(id, strlen(id), RECORD_KEY, 2);

	return boot ? boot : 1;
}
