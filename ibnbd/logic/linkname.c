// SPDX-License-Identifier: GPL-2.0-only
/* Names below ctl/devices; the header describes them. */
#include "ibnbd/logic/linkname.h"

size_t ibnbd_linkname(const char *text, char separator, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = 0;
	for (; *text; text++) {
		const char *as = NULL;

		if (*text == '/')
			as = "!";
		else if (*text == '!')
			as = "\\x21";
		else if (*text == separator)
			as = separator == '@' ? "\\x40" : "\\x23";
		else if (*text == '\\' && text[1] == 'x')
			as = "\\x5c";
		n += as ? scnprintf(buf + n, size - n, "%s", as) :
			  scnprintf(buf + n, size - n, "%c", *text);
	}
	return n;
}

size_t ibnbd_linkname_dev(const char *device_path, const char *sessname, char *buf, size_t size)
{
	size_t n = ibnbd_linkname(device_path, '@', buf, size);

	return n + scnprintf(buf + n, size - n, "@%s", sessname);
}
