// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* example DISK PATH..: what a disk is, and the first bytes of it. */
#include <libibnbd.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };
	struct ibtrs_clt_opts session = { .size = sizeof(session), .name = "example" };
	struct ibnbd_disk_opts o = { .size = sizeof(o), .access = IBNBD_DISK_RO };
	struct ibnbd_disk_info i = { .size = sizeof(i) };
	const char *const *paths = (const char *const *)argv + 2;
	char why[IBTRS_WHY_LEN] = "";
	const char *words = "";
	struct ibnbd_disk *disk;
	struct ibtrs_ctx *ctx;
	unsigned char *data;
	int err;

	if (argc < 3 || ibtrs_ctx_new(&ctx, &co))
		return 2;
	if (ibnbd_disk_open(ctx, argv[1], paths, (unsigned int)argc - 2, &session, &o, &disk, why)) {
		puts(why);
		return 1;
	}
	ibnbd_disk_info(disk, &i);
	printf("%llu bytes in blocks of %u\n", (unsigned long long)i.bytes, i.block_size);
	data = aligned_alloc(4096, i.block_size);
	err = ibnbd_read(ibnbd_disk_q(disk, 0), data, i.block_size, 0, &words);
	if (err)
		printf("it cannot be read: %s\n", words);
	else
		printf("it begins with %02x %02x %02x %02x\n", data[0], data[1], data[2], data[3]);
	free(data);
	ibnbd_disk_close(disk);
	ibtrs_ctx_free(ctx);
	return err != 0;
}
