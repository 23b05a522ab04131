// SPDX-License-Identifier: GPL-2.0-only
/* Every errno has words, printable ones, and those that users meet have words of their own. */
#include "unit.h"
#include "ibnbd/logic/errword.h"

static void check_words(const char *words)
{
	const char *p;

	if (!CHECK(words && *words))
		return;
	for (p = words; *p; p++)
		CHECK(*p >= 0x20 && *p < 0x7f);
}

UNIT_TEST(every_errno)
{
	int err;

	for (err = -4096; err <= 1; err++) {
		UNIT_ROW("errno %d", err);
		check_words(ibnbd_errword_open(err));
		check_words(ibnbd_errword_connect(err));
	}
}

UNIT_TEST(what_users_meet)
{
	static const int open[] = { ENOENT, EPERM, EACCES, EROFS, EBUSY, EINVAL, ENOMEDIUM, ENXIO,
				    ENODEV, ENOTBLK, EMFILE, ENOMEM, EIO, EOPNOTSUPP, ELOOP,
				    ETIMEDOUT, ECONNRESET, ENOTDIR, ETXTBSY, ENOSPC };
	static const int connect[] = { ECONNREFUSED, ECONNRESET, ETIMEDOUT, EHOSTUNREACH, ENODEV,
				       EACCES, EBUSY, ENOSPC, ENXIO, EEXIST, EINVAL,
				       ENOMEM, EPROTO, EMSGSIZE };
	const char *unknown_open = ibnbd_errword_open(-4095),
		*unknown_connect = ibnbd_errword_connect(-4095);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(open); i++) {
		UNIT_ROW("open, errno %d", open[i]);
		CHECK(strcmp(ibnbd_errword_open(-open[i]), unknown_open) != 0);
	}
	for (i = 0; i < ARRAY_SIZE(connect); i++) {
		UNIT_ROW("connect, errno %d", connect[i]);
		CHECK(strcmp(ibnbd_errword_connect(-connect[i]), unknown_connect) != 0);
	}
}
