/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of the entries below ctl/devices, which cannot hold a '/'. Different names always give
 * different entries, so two mappings never want the same entry. docs/sysfs.md describes them.
 *
 * '/' is written as '!', as in-kernel rnbd does. A '!' in the name becomes \x21. The character that
 * separates the name from the rest of the entry is escaped in the name: '@' (a session follows) as
 * \x40 on the client, '#' (a number follows) as \x23 on the server. A backslash before an 'x'
 * becomes \x5c, because it could be read as the start of an escape. All other characters stay as
 * they are.
 */
#ifndef IBNBD_LOGIC_LINKNAME_H
#define IBNBD_LOGIC_LINKNAME_H

#include "ibnbd/proto/wire.h"

/* Longest possible entry: four bytes for each byte of a device path, '@', session. */
#define IBNBD_LINKNAME_MAX	(5 * IBNBD_NAME_LEN)

/**
 * ibnbd_linkname() - a name without '/'
 * @text: a device path of a client, or the path of a file on the server
 * @separator: character that ends the name in the entry: '@' or '#'
 * @buf: the result, always terminated; 4 * strlen(@text) + 1 bytes hold every name
 * @size: of @buf; what does not fit is cut
 *
 * Return: length of what was written.
 */
size_t ibnbd_linkname(const char *text, char separator, char *buf, size_t size);

/**
 * ibnbd_linkname_dev() - the entry of a mapping in the client's ctl/devices
 * @device_path: as it was mapped
 * @sessname: name of the session, which holds no '/'
 * @buf: the result, always terminated
 * @size: of @buf, IBNBD_LINKNAME_MAX for every name
 *
 * Return: length of what was written.
 */
size_t ibnbd_linkname_dev(const char *device_path, const char *sessname, char *buf, size_t size);

#endif
