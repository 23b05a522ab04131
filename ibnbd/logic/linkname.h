/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of the entries below ctl/devices, which cannot hold a '/'. Each is a one-to-one
 * image of what it stands for, so that two mappings never want the same entry.
 * docs/sysfs.md describes them.
 *
 * '/' is written as '!', as in-kernel rnbd does. A '!' of the name itself becomes \x21, and
 * what separates the name from what follows is escaped in it: '@' (a session) as \x40 on
 * the client, '#' (a number) as \x23 on the server. A backslash becomes \x5c in front of an
 * 'x', where it could be read as one of these. Every other name stays as it is.
 */
#ifndef IBNBD_LOGIC_LINKNAME_H
#define IBNBD_LOGIC_LINKNAME_H

#include "ibnbd/proto/wire.h"

/* Longest name there can be: four bytes for each of a device path, '@', session. */
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
