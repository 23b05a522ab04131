// SPDX-License-Identifier: GPL-2.0-only
/* Addresses and paths as text (protocol 2.1, docs/sysfs.md; RFC 4291 and 5952). */
#include <ibtrs/addr.h>
#include "unit.h"

struct row {
	const char *in;
	int err;
	const char *out;	/* text form, or a part of the reason */
};

static void check_addr(const struct row *r)
{
	struct ibtrs_addr a, b;
	const char *why = NULL;
	char text[IBTRS_ADDR_STR_MAX];
	size_t len = strlen(r->in);
	char *exact = unit_exact(r->in, len);
	int n;

	UNIT_ROW("\"%s\"", r->in);
	if (CHECK_EQ(ibtrs_addr_parse(exact, len, &a, &why), r->err)) {
		if (r->err) {
			if (CHECK(why && strstr(why, r->out)) == false)
				fprintf(stderr, "  reason: %s\n", why ? why : "none");
			CHECK_EQ(a.kind, IBTRS_ADDR_NONE);
		} else {
			n = ibtrs_addr_format(&a, text, sizeof(text));
			CHECK_EQ(n, strlen(text));
			CHECK_STR(text, r->out);
			CHECK_EQ(ibtrs_addr_parse(text, n, &b, &why), 0);
			CHECK(ibtrs_addr_equal(&a, &b));
		}
	}
	free(exact);
}

UNIT_TEST(addr_ip4)
{
	static const struct row rows[] = {
		{ "ip:10.0.0.1", 0, "ip:10.0.0.1" },
		{ "10.0.0.1", 0, "ip:10.0.0.1" },
		{ "ip:0.0.0.0", 0, "ip:0.0.0.0" },
		{ "ip:255.255.255.255", 0, "ip:255.255.255.255" },
		{ "ip:256.0.0.1", -EINVAL, "malformed IPv4" },
		{ "ip:1.2.3", -EINVAL, "malformed IPv4" },
		{ "ip:1.2.3.", -EINVAL, "malformed IPv4" },
		{ "ip:1.2.3.4.", -EINVAL, "malformed IPv4" },
		{ "ip:1.2.3.4.5", -EINVAL, "malformed IPv4" },
		{ "ip:1..3.4", -EINVAL, "malformed IPv4" },
		{ "ip:.1.2.3", -EINVAL, "not an address" },
		{ "ip:01.2.3.4", -EINVAL, "malformed IPv4" },
		{ "ip:1.2.3.04", -EINVAL, "malformed IPv4" },
		{ "ip:1.2.3.0004", -EINVAL, "malformed IPv4" },
		{ "ip:1.2.3.-4", -EINVAL, "malformed IPv4" },
		{ "ip:1.2.3.4 ", -EINVAL, "malformed IPv4" },
		{ "ip: 1.2.3.4", -EINVAL, "not an address" },
		{ "ip:1.2.3.4:1234", -EINVAL, "malformed IPv6" },
		{ "ip:1.2.3.4%eth0", -EINVAL, "malformed IPv4" },
		{ "ip:[1.2.3.4]", -EINVAL, "malformed IPv4" },
		{ "ip:4294967296", -EINVAL, "malformed IPv4" },
		{ "ip:0x7f.0.0.1", -EINVAL, "malformed IPv4" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_addr(&rows[i]);
}

UNIT_TEST(addr_ip6)
{
	static const struct row rows[] = {
		{ "ip:fd00::1", 0, "ip:fd00::1" },
		{ "fd00::1", 0, "ip:fd00::1" },
		{ "::", 0, "ip:::" },
		{ "ip:::", 0, "ip:::" },
		{ "ip:::1", 0, "ip:::1" },
		{ "ip:1::", 0, "ip:1::" },
		{ "1:2:3:4:5:6:7:8", 0, "ip:1:2:3:4:5:6:7:8" },
		{ "ip:[fd00::1]", 0, "ip:fd00::1" },
		{ "[fd00::1]", 0, "ip:fd00::1" },
		/*
		 * RFC 5952: lower case, no leading zeros, longest run, first of
		 * equals, never one group alone
		 */
		{ "2001:0DB8:0000:0000:0000:0000:0002:0001", 0, "ip:2001:db8::2:1" },
		{ "2001:db8:0:1:1:1:1:1", 0, "ip:2001:db8:0:1:1:1:1:1" },
		{ "2001:db8::1:1:1:1:1", 0, "ip:2001:db8:0:1:1:1:1:1" },
		{ "2001:0:0:1:0:0:0:1", 0, "ip:2001:0:0:1::1" },
		{ "2001:db8:0:0:1:0:0:1", 0, "ip:2001:db8::1:0:0:1" },
		{ "0:0:0:1:0:0:0:0", 0, "ip:0:0:0:1::" },
		{ "0:0:0:0:1:0:0:0", 0, "ip:::1:0:0:0" },
		{ "::2:3:4:5:6:7:8", 0, "ip:0:2:3:4:5:6:7:8" },
		{ "1:2:3:4:5:6:7::", 0, "ip:1:2:3:4:5:6:7:0" },
		{ "1::8", 0, "ip:1::8" },
		/* dotted tail */
		{ "::ffff:10.0.0.1", 0, "ip:::ffff:10.0.0.1" },
		{ "::ffff:a00:1", 0, "ip:::ffff:10.0.0.1" },
		{ "1:2:3:4:5:6:7.8.9.10", 0, "ip:1:2:3:4:5:6:708:90a" },
		{ "64:ff9b::192.0.2.33", 0, "ip:64:ff9b::c000:221" },
		{ "::1.2.3.4", 0, "ip:::102:304" },
		/* refused */
		{ "1:2:3:4:5:6:7", -EINVAL, "malformed IPv6" },
		{ "1:2:3:4:5:6:7:8:9", -EINVAL, "malformed IPv6" },
		{ "1:2:3:4:5:6:7:8::", -EINVAL, "malformed IPv6" },
		{ "::1:2:3:4:5:6:7:8", -EINVAL, "malformed IPv6" },
		{ "1:2:3:4::5:6:7:8", -EINVAL, "malformed IPv6" },
		{ "1:2:3:4:5:6:7:1.2.3.4", -EINVAL, "malformed IPv6" },
		{ "1::2::3", -EINVAL, "malformed IPv6" },
		{ ":::", -EINVAL, "malformed IPv6" },
		{ "ip::::1", -EINVAL, "malformed IPv6" },
		{ "1:::2", -EINVAL, "malformed IPv6" },
		{ ":1::2", -EINVAL, "malformed IPv6" },
		{ "1::2:", -EINVAL, "malformed IPv6" },
		{ "ip::", -EINVAL, "malformed IPv6" },
		{ "12345::", -EINVAL, "malformed IPv6" },
		{ "1::00001", -EINVAL, "malformed IPv6" },
		{ "::1.2.3", -EINVAL, "malformed IPv6" },
		{ "::1.2.3.4:5", -EINVAL, "malformed IPv6" },
		{ "::1.2.3.256", -EINVAL, "malformed IPv6" },
		{ "1.2.3.4::", -EINVAL, "malformed IPv6" },
		{ "fe80::1/64", -EINVAL, "malformed IPv6" },
		{ "ip:[fd00::1", -EINVAL, "'['" },
		{ "ip:[fd00::1]:1234", -EINVAL, "'['" },
		{ "ip:fd00::1]", -EINVAL, "malformed IPv6" },
		{ "ip:[", -EINVAL, "'['" },
		{ "ip:]", -EINVAL, "not an address" },
		{ "ip:[]", -EINVAL, "not an address" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_addr(&rows[i]);
}

UNIT_TEST(addr_scope)
{
	static const struct row rows[] = {
		{ "ip:fe80::1%eth0", 0, "ip:fe80::1%eth0" },
		{ "fe80::1%eth0", 0, "ip:fe80::1%eth0" },
		{ "ip:[fe80::1%eth0]", 0, "ip:fe80::1%eth0" },
		{ "ip:febf::1%2", 0, "ip:febf::1%2" },
		{ "ip:fe80::1%bond0.100", 0, "ip:fe80::1%bond0.100" },
		{ "ip:fe80::1%abcdefghijklmno", 0, "ip:fe80::1%abcdefghijklmno" },
		{ "ip:fe80::1%abcdefghijklmnop", -EINVAL, "interface name" },
		{ "ip:fe80::1", 0, "ip:fe80::1" },
		/* says nothing where the address is not link-local, but must be well formed */
		{ "ip:fd00::1%eth0", 0, "ip:fd00::1" },
		{ "ip:fec0::1%eth0", 0, "ip:fec0::1" },
		{ "ip:fd00::1%", -EINVAL, "interface name" },
		{ "ip:fe80::1%", -EINVAL, "interface name" },
		{ "ip:fe80::1%eth0%", -EINVAL, "interface name" },
		{ "ip:fe80::1%a b", -EINVAL, "interface name" },
		{ "ip:fe80::1%a/b", -EINVAL, "interface name" },
		{ "ip:fe80::1%a\tb", -EINVAL, "interface name" },
		{ "ip:fe80::1%.", -EINVAL, "interface name" },
		{ "ip:fe80::1%..", -EINVAL, "interface name" },
		{ "ip:fe80::1%...", 0, "ip:fe80::1%..." },
		{ "ip:[fe80::1]%eth0", -EINVAL, "'['" },
		{ "ip:%eth0", -EINVAL, "not an address" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_addr(&rows[i]);
}

UNIT_TEST(addr_gid_and_prefixes)
{
	static const struct row rows[] = {
		{ "gid:fe80::2:c903:4e:d0b3", 0, "gid:fe80:0000:0000:0000:0002:c903:004e:d0b3" },
		{ "gid:fe80:0000:0000:0000:0002:c903:004e:d0b3",
		  0, "gid:fe80:0000:0000:0000:0002:c903:004e:d0b3" },
		{ "gid:::ffff:10.0.0.1", 0, "gid:0000:0000:0000:0000:0000:ffff:0a00:0001" },
		{ "gid:::", 0, "gid:0000:0000:0000:0000:0000:0000:0000:0000" },
		{ "gid:", -EINVAL, "malformed GID" },
		{ "gid:10.0.0.1", -EINVAL, "malformed GID" },
		{ "gid:fe80::1%eth0", -EINVAL, "malformed GID" },
		{ "gid:[fe80::1]", -EINVAL, "malformed GID" },
		{ "gid:zz", -EINVAL, "malformed GID" },
		{ "", -EINVAL, "empty" },
		{ "ip:", -EINVAL, "not an address" },
		{ "ip", -EINVAL, "not an address" },
		{ "storage1", -EINVAL, "resolves no names" },
		{ "ip:storage1.example.org", -EINVAL, "resolves no names" },
		{ "beef", -EINVAL, "resolves no names" },
		{ "tcp:10.0.0.1", -EPROTONOSUPPORT, "unknown kind" },
		{ "ib:fe80::1", -EPROTONOSUPPORT, "unknown kind" },
		{ "IP:10.0.0.1", -EPROTONOSUPPORT, "unknown kind" },
		{ "storage1:1234", -EPROTONOSUPPORT, "unknown kind" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_addr(&rows[i]);
}

UNIT_TEST(addr_pair)
{
	static const struct row rows[] = {
		{ "ip:10.0.0.1@ip:10.0.0.2", 0, "ip:10.0.0.1@ip:10.0.0.2" },
		{ "ip:10.0.0.1,ip:10.0.0.2", 0, "ip:10.0.0.1@ip:10.0.0.2" },
		{ "10.0.0.1@10.0.0.2", 0, "ip:10.0.0.1@ip:10.0.0.2" },
		{ "ip:10.0.0.2", 0, "ip:10.0.0.2" },
		{ "ip:fe80::1%eth0@ip:fe80::2%eth0", 0, "ip:fe80::1%eth0@ip:fe80::2%eth0" },
		{ "ip:[fe80::1%eth0],ip:[fe80::2%eth0]", 0, "ip:fe80::1%eth0@ip:fe80::2%eth0" },
		{ "gid:fe80::1@gid:fe80::2", 0,
		  "gid:fe80:0000:0000:0000:0000:0000:0000:0001"
		  "@gid:fe80:0000:0000:0000:0000:0000:0000:0002" },
		{ "ip:10.0.0.1@ip:10.0.0.1", 0, "ip:10.0.0.1@ip:10.0.0.1" },
		{ "ip:127.0.0.1", 0, "ip:127.0.0.1" },
		{ "ip:0.0.0.0@ip:10.0.0.2", 0, "ip:0.0.0.0@ip:10.0.0.2" },
		{ "ip:223.255.255.255", 0, "ip:223.255.255.255" },
		{ "ip:240.0.0.1", 0, "ip:240.0.0.1" },
		{ "", -EINVAL, "empty path" },
		{ "@", -EINVAL, "empty source" },
		{ "@ip:10.0.0.2", -EINVAL, "empty source" },
		{ ",ip:10.0.0.2", -EINVAL, "empty source" },
		{ "ip:10.0.0.1@", -EINVAL, "empty destination" },
		{ "ip:10.0.0.1,", -EINVAL, "empty destination" },
		/* the first ',' decides, so '@' is then part of an address */
		{ "ip:10.0.0.1@ip:10.0.0.2,ip:10.0.0.3", -EINVAL, "IPv" },
		{ "ip:10.0.0.1@ip:10.0.0.2@ip:10.0.0.3", -EINVAL, "IPv" },
		{ "ip:10.0.0.1,ip:10.0.0.2,ip:10.0.0.3", -EINVAL, "IPv" },
		{ "ip:10.0.0.1@ip:fd00::2", -EINVAL, "different kinds" },
		{ "ip:fe80::1@gid:fe80::2", -EINVAL, "different kinds" },
		{ "tcp:10.0.0.1@ip:10.0.0.2", -EINVAL, "unknown kind" },
		{ "ip:10.0.0.1@tcp:10.0.0.2", -EPROTONOSUPPORT, "unknown kind" },
		{ "tcp:10.0.0.2", -EPROTONOSUPPORT, "unknown kind" },
		{ "ip:fe80::1", -EINVAL, "needs its interface" },
		{ "fe80::1,fe80::2%eth0", -EINVAL, "needs its interface" },
		{ "ip:fe80::1%eth0@ip:fe80::2", -EINVAL, "needs its interface" },
		{ "host1@host2", -EINVAL, "resolves no names" },
		{ "ip:0.0.0.0", -EINVAL, "unspecified" },
		{ "ip:::", -EINVAL, "unspecified" },
		{ "gid:::", -EINVAL, "unspecified" },
		{ "ip:::ffff:0.0.0.0", -EINVAL, "unspecified" },
		{ "ip:224.0.0.1", -EINVAL, "multicast" },
		{ "ip:239.255.255.255", -EINVAL, "multicast" },
		{ "ip:255.255.255.255", -EINVAL, "broadcast" },
		{ "ip:::ffff:224.0.0.1", -EINVAL, "multicast" },
		{ "ip:ff02::1", -EINVAL, "multicast" },
		{ "gid:ff12:401b::1", -EINVAL, "multicast" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_addr_pair p, q;
		const char *why = NULL;
		char text[IBTRS_PATH_STR_MAX];
		size_t len = strlen(rows[i].in);
		char *exact = unit_exact(rows[i].in, len);

		UNIT_ROW("\"%s\" (%s)", rows[i].in, why ? why : "");
		if (CHECK_EQ(ibtrs_addr_pair_parse(exact, len, &p, &why), rows[i].err)) {
			if (rows[i].err) {
				UNIT_ROW("\"%s\" (%s)", rows[i].in, why ? why : "no reason");
				CHECK(why && strstr(why, rows[i].out));
			} else {
				CHECK_EQ(ibtrs_addr_pair_format(&p, text, sizeof(text)),
					 strlen(rows[i].out));
				CHECK_STR(text, rows[i].out);
				CHECK_EQ(ibtrs_addr_pair_parse(text, strlen(text), &q, NULL), 0);
				CHECK(ibtrs_addr_equal(&p.src, &q.src) &&
				      ibtrs_addr_equal(&p.dst, &q.dst));
			}
		}
		free(exact);
	}
}

static struct ibtrs_addr addr(const char *s)
{
	struct ibtrs_addr a;

	CHECK_EQ(ibtrs_addr_parse(s, strlen(s), &a, NULL), 0);
	return a;
}

UNIT_TEST(addr_equal_table)
{
	static const struct {
		const char *a, *b;
		bool want;
	} rows[] = {
		{ "10.0.0.1", "ip:10.0.0.1", true },
		{ "10.0.0.1", "10.0.0.2", false },
		{ "10.0.0.1", "::ffff:10.0.0.1", false },
		{ "fd00::1", "fd00:0::1", true },
		{ "fe80::1%a", "fe80::1%a", true },
		{ "fe80::1%a", "fe80::1%b", false },
		{ "fe80::1%a", "fe80::1", false },
		{ "gid:fe80::1", "ip:fe80::1", false },
		{ "gid:fe80::1", "gid:fe80:0::1", true },
		{ "gid:fe80::1", "gid:fe80::2", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_addr a = addr(rows[i].a), b = addr(rows[i].b);

		UNIT_ROW("%s and %s", rows[i].a, rows[i].b);
		CHECK_EQ(ibtrs_addr_equal(&a, &b), rows[i].want);
		CHECK_EQ(ibtrs_addr_equal(&b, &a), rows[i].want);
	}
	UNIT_ROW("only the first four bytes of an IPv4 address count");
	struct ibtrs_addr a = addr("10.0.0.1"), b = a, none = { 0 };

	b.raw[9] = 1;
	CHECK(ibtrs_addr_equal(&a, &b));
	CHECK(ibtrs_addr_equal(&none, &none));
	CHECK(!ibtrs_addr_equal(&none, &a));
}

/* A buffer that is too small is filled, ended, and never overrun. */
UNIT_TEST(addr_format_small_buffers)
{
	static const char * const paths[] = {
		"10.0.0.1@10.0.0.2", "fe80::1234:5678:9abc:def0%abcdefghijklmno",
		"gid:fe80::1@gid:fe80::2",
		"ip:2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff"
		"@ip:2001:db8:aaaa:bbbb:cccc:dddd:eeee:fffe",
		"ip:fe80:1111:2222:3333:4444:5555:6666:7777%abcdefghijklmno"
		"@ip:fe80:1111:2222:3333:4444:5555:6666:7778%abcdefghijklmno",
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct ibtrs_addr_pair p;
		char full[IBTRS_PATH_STR_MAX];
		int len;

		CHECK_EQ(ibtrs_addr_pair_parse(paths[i], strlen(paths[i]), &p, NULL), 0);
		len = ibtrs_addr_pair_format(&p, full, sizeof(full));
		CHECK(len < IBTRS_PATH_STR_MAX - 1);
		for (size_t size = 0; size <= (size_t)len + 2; size++) {
			char *buf = malloc(size);
			int n = ibtrs_addr_pair_format(&p, buf, size);

			UNIT_ROW("%s into %zu bytes", paths[i], size);
			CHECK_EQ(n, size ? (size <= (size_t)len ? size - 1 : (size_t)len) : 0);
			if (size) {
				CHECK_MEM(buf, full, n);
				CHECK_EQ(buf[n], 0);
			}
			free(buf);
		}
	}
	struct ibtrs_addr none = { 0 };
	char buf[4] = "xyz";

	CHECK_EQ(ibtrs_addr_format(&none, buf, sizeof(buf)), 0);
	CHECK_STR(buf, "");
}
