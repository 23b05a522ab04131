// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * An errno of the other host in words, for a refusal that came without words: from an in-kernel
 * server, from one of our servers when WORDS was not negotiated, or from the connection manager.
 * Pure.
 */
#include "ibnbd/logic/errword.h"

/* Errors that mean the same for every request. */
static const char *const errword_any[] = {
	[ENOMEM]	= "no memory, there or here",
	[ENOTCONN]	= "the link went down meanwhile",
	[ECONNABORTED]	= "the link went down meanwhile",
	[ETIMEDOUT]	= "no answer",
	[EINTR]		= "killed",
	[EPROTO]	= "the answer is invalid: the versions of the two ends may be incompatible",
	[EIO]		= "an input/output error",
	[EOPNOTSUPP]	= "not supported there",
};

/* The word for @err of @words, one of errword_any, or @other. */
static const char *errword(const char *const *words, size_t nr, int err, const char *other)
{
	size_t n = -err;

	if (n < nr && words[n])
		return words[n];
	return n < ARRAY_SIZE(errword_any) && errword_any[n] ? errword_any[n] : other;
}

static const char *const errword_open[] = {
	[ENOENT]	= "the server exports nothing of that name",
	[ENOTDIR]	= "the server exports nothing of that name",
	[EPERM]		= "another client has it open for writing: use access_mode=ro or migration",
	[EACCES]	= "the server does not allow it",
	[EROFS]		= "the disk is read-only: use access_mode=ro",
	[EBUSY]		= "the disk is in use on the server, or has not ended the requests of an earlier mapping",
	[ETXTBSY]	= "the disk is in use on the server, or has not ended the requests of an earlier mapping",
	[EINVAL]	= "the server refuses the name or the access mode",
	[ECONNRESET]	= "the link went down meanwhile",
	[ENOMEDIUM]	= "the disk has no medium, or no size yet",
	[ENXIO]		= "there is no device behind that name on the server",
	[ENODEV]	= "there is no device behind that name on the server",
	[ENOTBLK]	= "that name is no disk on the server",
	[EISDIR]	= "that name is no disk on the server",
	[ELOOP]		= "that name leads through symbolic links which the server does not follow",
	[ENAMETOOLONG]	= "that name is too long for the server",
	[EMFILE]	= "the server has opened as much as it may",
	[ENFILE]	= "the server has opened as much as it may",
	[ENOSPC]	= "the server has no room for it",
	[EEXIST]	= "the server has it open for this session already",
	[ESTALE]	= "the server's file system has lost that name",
};

/**
 * ibnbd_errword_open() - why did a server refuse to open a device?
 * @err: negative errno of its answer to OPEN
 *
 * Return: words, never NULL.
 */
const char *ibnbd_errword_open(int err)
{
	return errword(errword_open, ARRAY_SIZE(errword_open), err,
		       "the server refuses it and gives no reason that is known here");
}

static const char *const errword_connect[] = {
	[ECONNREFUSED]	= "nothing listens there: is the server's module loaded and its search path set?",
	[ECONNRESET]	= "the server refused or dropped the connection",
	[EHOSTUNREACH]	= "no route to that address",
	[ENETUNREACH]	= "no route to that address",
	[ENODEV]	= "no RDMA device here leads to that address",
	[EADDRNOTAVAIL]	= "no RDMA device here leads to that address",
	[EACCES]	= "the server does not let this host in",
	[EPERM]		= "the server does not let this host in",
	[EBUSY]		= "the server has not ended this host's earlier connection",
	[ENOSPC]	= "the server has as many sessions as it may have",
	[EKEYREJECTED]	= "one side does not prove that it has the key",
	[ENOKEY]	= "the key is not loaded here",
	[ENXIO]		= "the server does not know the session",
	[EEXIST]	= "the server has a connection between these addresses, or a session of that name, already",
	[EMSGSIZE]	= "small packets come through, full-size ones are lost: is the MTU the same on both hosts and all switches between?",
	[EINVAL]	= "the server refuses the session's name",
};

/**
 * ibnbd_errword_connect() - why is there no connection?
 * @err: negative errno
 *
 * Return: words, never NULL.
 */
const char *ibnbd_errword_connect(int err)
{
	return errword(errword_connect, ARRAY_SIZE(errword_connect), err,
		       "the attempt failed, see the kernel log");
}
