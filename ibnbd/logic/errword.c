// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * An errno of the other host in words, for a refusal that came without words: from an in-kernel
 * server, from one of our servers when WORDS was not negotiated, or from the connection manager.
 * Pure.
 */
#include "ibnbd/logic/errword.h"

/* Errors that mean the same for every request; NULL: no words that would help a user. */
static const char *errword_any(int err)
{
	switch (err) {
	case -ENOMEM:
		return "no memory, there or here";
	case -ENOTCONN:
	case -ECONNABORTED:
		return "the link went down meanwhile";
	case -ETIMEDOUT:
		return "no answer";
	case -EINTR:
		return "killed";
	case -EPROTO:
		return "the answer is invalid: the versions of the two ends may be incompatible";
	case -EIO:
		return "an input/output error";
	case -EOPNOTSUPP:
		return "not supported there";
	default:
		return NULL;
	}
}

/**
 * ibnbd_errword_open() - why did a server refuse to open a device?
 * @err: negative errno of its answer to OPEN
 *
 * Return: words, never NULL.
 */
const char *ibnbd_errword_open(int err)
{
	const char *any;

	switch (err) {
	case -ENOENT:
	case -ENOTDIR:
		return "the server exports nothing of that name";
	case -EPERM:
		return "another client has it open for writing: use access_mode=ro or migration";
	case -EACCES:
		return "the server does not allow it";
	case -EROFS:
		return "the disk is read-only: use access_mode=ro";
	case -EBUSY:
	case -ETXTBSY:
		return "the disk is in use on the server, or has not ended the requests of an earlier mapping";
	case -EINVAL:
		return "the server refuses the name or the access mode";
	case -ECONNRESET:
		return "the link went down meanwhile";
	case -ENOMEDIUM:
		return "the disk has no medium, or no size yet";
	case -ENXIO:
	case -ENODEV:
		return "there is no device behind that name on the server";
	case -ENOTBLK:
	case -EISDIR:
		return "that name is no disk on the server";
	case -ELOOP:
		return "that name leads through symbolic links which the server does not follow";
	case -ENAMETOOLONG:
		return "that name is too long for the server";
	case -EMFILE:
	case -ENFILE:
		return "the server has opened as much as it may";
	case -ENOSPC:
		return "the server has no room for it";
	case -EEXIST:
		return "the server has it open for this session already";
	case -ESTALE:
		return "the server's file system has lost that name";
	default:
		any = errword_any(err);
		return any ? any : "the server refuses it and gives no reason that is known here";
	}
}

/**
 * ibnbd_errword_connect() - why is there no connection?
 * @err: negative errno
 *
 * Return: words, never NULL.
 */
const char *ibnbd_errword_connect(int err)
{
	const char *any;

	switch (err) {
	case -ECONNREFUSED:
		return "nothing listens there: is the server's module loaded and its search path set?";
	case -ECONNRESET:
		return "the server refused or dropped the connection";
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return "no route to that address";
	case -ENODEV:
	case -EADDRNOTAVAIL:
		return "no RDMA device here leads to that address";
	case -EACCES:
	case -EPERM:
		return "the server does not let this host in";
	case -EBUSY:
		return "the server has not ended this host's earlier connection";
	case -ENOSPC:
		return "the server has as many sessions as it may have";
	case -EKEYREJECTED:
		return "one side does not prove that it has the key";
	case -ENOKEY:
		return "the key is not loaded here";
	case -ENXIO:
		return "the server does not know the session";
	case -EEXIST:
		return "the server has a connection between these addresses, or a session of that name, already";
	case -EMSGSIZE:
		return "small packets come through, full-size ones are lost: is the MTU the same on both hosts and all switches between?";
	case -EINVAL:
		return "the server refuses the session's name";
	default:
		any = errword_any(err);
		return any ? any : "the attempt failed, see the kernel log";
	}
}
