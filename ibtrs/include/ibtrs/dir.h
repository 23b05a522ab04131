/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#ifndef IBTRS_DIR_H
#define IBTRS_DIR_H

enum ibtrs_dir {
	IBTRS_READ,	/* the server's answer carries data to the client */
	IBTRS_WRITE,	/* the request carries data to the server, or nothing */
};

#endif
