/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBTRS_PROTO_REFUSE_H
#define IBTRS_PROTO_REFUSE_H

/* The end of a decoder: the reason, for who asks for one, and the errno. */
static inline int refuse(const char **why, const char *text, int err)
{
	if (why)
		*why = text;
	return err;
}

#endif
