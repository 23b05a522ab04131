// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mapping grammar: what it accepts (docs/sysfs.md), the canonical line, and for
 * every kind of mistake the code, the place and the words of the refusal.
 */
#include "unit.h"
#include "ibnbd/logic/mapopt.h"
#include "tools/conf/maps_conf.h"

#define REQ	"sessname=s device_path=d "
#define N	25	/* its length */
#define X50	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X254	X50 X50 X50 X50 X50 "xxxx"
#define X32	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static struct ibnbd_map map, map2;
static struct ibnbd_mapopt_err err;

/* From memory that ends where the line ends. */
static int parse(const char *line, struct ibnbd_map *m)
{
	size_t len = strlen(line);
	char *copy = unit_exact(line, len);
	int rc;

	memset(&err, 0xa5, sizeof(err));
	rc = ibnbd_mapopt_parse(copy, len, m, &err);
	free(copy);
	return rc;
}

UNIT_TEST(required_macro_length)
{
	CHECK_EQ(strlen(REQ), N);
	CHECK_EQ(strlen(X254), 254);
}

UNIT_TEST(defaults)
{
	CHECK_EQ(parse("sessname=s device_path=d", &map), 0);
	CHECK_STR(map.sessname, "s");
	CHECK_STR(map.device_path, "d");
	CHECK_STR(map.name, "");
	CHECK_EQ(map.nr_paths, 0);
	CHECK_EQ(map.dest_port, 1234);
	CHECK_EQ(map.access_mode, IBNBD_ACCESS_RW);
	CHECK_EQ(map.nr_poll_queues, 0);
	CHECK_EQ(map.hold, 100);
	CHECK_EQ(map.failfast, 5);
	CHECK_EQ(map.io_timeout, 0);
	CHECK_EQ(map.hb_interval_ms, 1000);
	CHECK_EQ(map.hb_misses, 3);
	CHECK_EQ(map.reconnect_delay_ms, 100);
	CHECK_EQ(map.reconnect_max_ms, 1000);
	CHECK_EQ(map.max_reconnect_attempts, -1);
	CHECK_EQ(map.policy, IBNBD_POLICY_MIN_INFLIGHT);
	CHECK_EQ(map.write_zeroes, IBNBD_ZEROES_AUTO);
	CHECK_EQ(map.write_cache, IBNBD_CACHE_AUTO);
	CHECK_EQ(map.unflushed, IBNBD_UNFLUSHED_AUTO);
	CHECK_EQ(map.retain_mb, 64);
	CHECK_EQ(map.given, 1u << IBNBD_OPT_sessname | 1u << IBNBD_OPT_device_path);
}

UNIT_TEST(accepts)
{
	/* @canonical NULL = the line itself */
	static const struct { const char *name, *line, *canonical; } rows[] = {
		{ "the shortest", "sessname=s device_path=d", NULL },
		{ "trailing newline", "sessname=s device_path=d\n", "sessname=s device_path=d" },
		{ "several newlines", "sessname=s device_path=d\n\n", "sessname=s device_path=d" },
		{ "blanks everywhere",
		  "   sessname=s    device_path=d   ", "sessname=s device_path=d" },
		{ "tabs between words",
		  "\tsessname=s\tdevice_path=d\t\n", "sessname=s device_path=d" },
		{ "other order", "device_path=d sessname=s", "sessname=s device_path=d" },
		{ "port after path", "path=ip:10.0.0.1 sessname=s dest_port=4321 device_path=d",
		  "sessname=s path=ip:10.0.0.1 device_path=d dest_port=4321" },
		{ "port before path", "dest_port=4321 path=ip:10.0.0.1 sessname=s device_path=d",
		  "sessname=s path=ip:10.0.0.1 device_path=d dest_port=4321" },
		{ "path with comma", REQ "path=ip:10.0.0.1,ip:10.0.0.2",
		  "sessname=s path=ip:10.0.0.1@ip:10.0.0.2 device_path=d" },
		{ "path with at", REQ "path=ip:10.0.0.1@ip:10.0.0.2",
		  "sessname=s path=ip:10.0.0.1@ip:10.0.0.2 device_path=d" },
		{ "six paths",
		  REQ "path=ip:1.0.0.1 path=ip:1.0.0.2 path=ip:1.0.0.3 path=ip:1.0.0.4 "
		  "path=ip:1.0.0.5 path=ip:1.0.0.6",
		  "sessname=s path=ip:1.0.0.1 path=ip:1.0.0.2 path=ip:1.0.0.3 path=ip:1.0.0.4 "
		  "path=ip:1.0.0.5 path=ip:1.0.0.6 device_path=d" },
		{ "IPv6", REQ "path=ip:fd00:0::1", "sessname=s path=ip:fd00::1 device_path=d" },
		{ "link local with scope",
		  REQ "path=ip:fe80::1%eth0", "sessname=s path=ip:fe80::1%eth0 device_path=d" },
		{ "GID", REQ "path=gid:fe80::1",
		  "sessname=s path=gid:fe80:0000:0000:0000:0000:0000:0000:0001 device_path=d" },
		{ "bare address",
		  REQ "path=10.0.0.1", "sessname=s path=ip:10.0.0.1 device_path=d" },
		{ "ro", REQ "access_mode=ro", NULL },
		{ "rw", REQ "access_mode=rw", NULL },
		{ "migration", REQ "access_mode=migration", NULL },
		{ "bare ro", REQ "ro", REQ "access_mode=ro" },
		{ "bare rw", "rw " REQ, REQ "access_mode=rw" },
		{ "bare migration", REQ "migration", REQ "access_mode=migration" },
		{ "aliases",
		  "session=s device=d server=ip:1.0.0.1 port=1 access=ro poll_queues=2 "
		  "max_reconnect=3",
		  "sessname=s path=ip:1.0.0.1 device_path=d dest_port=1 access_mode=ro "
		  "nr_poll_queues=2 max_reconnect_attempts=3" },
		{ "dashes", "sessname=s device-path=d max-reconnect-attempts=7 nr-poll-queues=-1",
		  REQ "nr_poll_queues=-1 max_reconnect_attempts=7" },
		{ "port 0", REQ "dest_port=0", NULL },
		{ "port 65535", REQ "dest_port=65535", NULL },
		{ "port in hex", REQ "dest_port=0x4d2", REQ "dest_port=1234" },
		{ "a plus sign", REQ "hold=+5", REQ "hold=5" },
		{ "poll queues -1", REQ "nr_poll_queues=-1", NULL },
		{ "hold for ever", REQ "hold=-1", NULL },
		{ "hold nothing", REQ "hold=0", NULL },
		{ "attempts, lower end", REQ "max_reconnect_attempts=-1", NULL },
		{ "attempts, upper end", REQ "max_reconnect_attempts=9999", NULL },
		{ "timeout", REQ "io_timeout=30", NULL },
		{ "heartbeat", REQ "hb_interval_ms=500 hb_misses=5", NULL },
		{ "backoff", REQ "reconnect_delay_ms=200 reconnect_max_ms=2000", NULL },
		{ "backoff, equal", REQ "reconnect_delay_ms=1000", NULL },
		{ "policy", REQ "policy=round-robin", NULL },
		{ "policy, min-latency", REQ "policy=min-latency", NULL },
		{ "policy, short", REQ "policy=mi", REQ "policy=min-inflight" },
		{ "policy under the sysfs name", REQ "mpath_policy=rr", REQ "policy=round-robin" },
		{ "write zeroes", REQ "write_zeroes=on", NULL },
		{ "write zeroes off", REQ "write_zeroes=off", NULL },
		{ "write cache", REQ "write_cache=off", NULL },
		{ "unflushed", REQ "unflushed=fence", NULL },
		{ "kept", REQ "unflushed=replay retain_mb=1", NULL },
		{ "unflushed, the default", REQ "unflushed=auto", NULL },
		{ "old words", REQ "io_mode=fileio input_mode=rq", NULL },
		{ "own name", REQ "name=vol-1.a_B", NULL },
		{ "equals sign in a value", "sessname=a=b device_path=c=d", NULL },
		{ "commas and quotes are bytes", "sessname=a,\"b' device_path=x;y", NULL },
		{ "at sign in the session", "sessname=clt9@store1 device_path=d", NULL },
		{ "slashes, dots, doubled", "sessname=s device_path=//dev/../sda.1/", NULL },
		{ "UTF-8", "sessname=spei\xc3\xa4""cher device_path=pl\xc3\xa4tte", NULL },
		{ "format characters", "sessname=%s%n device_path=%d%p", NULL },
		{ "longest names", "sessname=" X254 " device_path=" X254, NULL },
		{ "longest own name", REQ "name=" X32 X32, NULL },
		{ "everything",
		  "sessname=s path=ip:1.0.0.1@ip:1.0.0.2 device_path=d dest_port=1 access_mode=ro "
		  "nr_poll_queues=1 hold=1 group=g failfast=1 io_timeout=1 hb_interval_ms=100 hb_misses=1 "
		  "reconnect_delay_ms=10 reconnect_max_ms=10 max_reconnect_attempts=1 "
		  "policy=min-latency write_zeroes=auto write_cache=auto unflushed=ignore "
		  "retain_mb=1 name=n "
		  "io_mode=blockio input_mode=mq",
		  NULL },
	};
	char out[IBNBD_MAP_LINE_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *want = rows[i].canonical ? rows[i].canonical : rows[i].line;
		size_t n = strlen(want);
		int rc = parse(rows[i].line, &map);

		UNIT_ROW("%s (%s)", rows[i].name, rc ? err.msg : "accepted");
		if (!CHECK_EQ(rc, 0))
			continue;
		while (n && want[n - 1] == ' ')
			n--;
		CHECK_EQ(mapopt_format(&map, out, sizeof(out)), n);
		CHECK_EQ(strlen(out), n);
		CHECK_MEM(out, want, n);
		CHECK_EQ(parse(out, &map2), 0);
		CHECK_MEM(&map2, &map, sizeof(map));
	}
}

UNIT_TEST(values_arrive)
{
	CHECK_EQ(parse(
		"sessname=store device_path=vol/1 path=ip:10.0.0.1,ip:10.0.0.2 path=gid:fe80::2 "
		"dest_port=99 migration nr_poll_queues=4 hold=-1 group=m1 failfast=3600 io_timeout=7 hb_interval_ms=250 "
		"hb_misses=9 reconnect_delay_ms=50 reconnect_max_ms=60 max_reconnect_attempts=12 "
		"policy=ml auth=db-1 write_zeroes=on write_cache=off unflushed=ignore retain_mb=9 "
		"name=me",
		&map), 0);
	CHECK_STR(map.sessname, "store");
	CHECK_STR(map.device_path, "vol/1");
	CHECK_EQ(map.nr_paths, 2);
	CHECK_EQ(map.path[0].src.kind, IBTRS_ADDR_IP4);
	CHECK_EQ(map.path[0].src.raw[3], 1);
	CHECK_EQ(map.path[0].dst.raw[3], 2);
	CHECK_EQ(map.path[1].src.kind, IBTRS_ADDR_NONE);
	CHECK_EQ(map.path[1].dst.kind, IBTRS_ADDR_GID);
	CHECK_EQ(map.dest_port, 99);
	CHECK_EQ(map.access_mode, IBNBD_ACCESS_MIGRATION);
	CHECK_EQ(map.nr_poll_queues, 4);
	CHECK_EQ(map.hold, IBNBD_MAP_FOREVER);
	CHECK_STR(map.group, "m1");
	CHECK_EQ(map.failfast, 3600);
	CHECK_EQ(map.io_timeout, 7);
	CHECK_EQ(map.hb_interval_ms, 250);
	CHECK_EQ(map.hb_misses, 9);
	CHECK_EQ(map.reconnect_delay_ms, 50);
	CHECK_EQ(map.reconnect_max_ms, 60);
	CHECK_EQ(map.max_reconnect_attempts, 12);
	CHECK_EQ(map.policy, IBNBD_POLICY_MIN_LATENCY);
	CHECK_STR(map.auth, "db-1");
	CHECK_EQ(map.write_zeroes, IBNBD_ZEROES_ON);
	CHECK_EQ(map.write_cache, IBNBD_CACHE_OFF);
	CHECK_EQ(map.unflushed, IBNBD_UNFLUSHED_IGNORE);
	CHECK_EQ(map.retain_mb, 9);
	CHECK_STR(map.name, "me");
	CHECK(ibnbd_map_given(&map, IBNBD_OPT_path));
	CHECK(!ibnbd_map_given(&map, IBNBD_OPT_io_mode));
}

UNIT_TEST(refuses)
{
	static const struct {
		const char *line;
		int rc;
		size_t pos, len;
		const char *msg;
	} rows[] = {
		/* nothing, or too little */
		{ "", -EINVAL, 0, 0, "sessname=NAME is missing" },
		{ "\n", -EINVAL, 0, 0, "sessname=NAME is missing" },
		{ "    ", -EINVAL, 4, 0, "sessname=NAME is missing" },
		{ "sessname=s", -EINVAL, 10, 0, "device_path=PATH is missing" },
		{ "device_path=d", -EINVAL, 13, 0, "sessname=NAME is missing" },
		{ "device_path=d path=ip:1.0.0.1 \n", -EINVAL, 30, 0, "sessname=NAME is missing" },
		/* words */
		{ "help", -EINVAL, 0, 4, "\"help\" is not key=value" },
		{ REQ "10.0.0.1", -EINVAL, N, 8, "\"10.0.0.1\" is not key=value" },
		{ REQ "RO", -EINVAL, N, 2, "\"RO\" is not key=value" },
		{ REQ "access_mode", -EINVAL, N, 11,
		  "access_mode needs a value: access_mode=MODE" },
		{ REQ "path", -EINVAL, N, 4, "path needs a value: path=[SRC,]DST" },
		{ REQ "=", -EINVAL, N, 1, "there is no key before '='" },
		{ REQ "=value", -EINVAL, N, 6, "there is no key before '='" },
		{ "sessname= device_path=d", -EINVAL, 9, 0, "sessname has no value" },
		{ "sessname=s device_path=", -EINVAL, 23, 0, "device_path has no value" },
		{ REQ "path=", -EINVAL, N + 5, 0, "path has no value" },
		{ REQ "dest_port=", -EINVAL, N + 10, 0, "dest_port has no value" },
		{ REQ "access_mode=", -EINVAL, N + 12, 0, "access_mode has no value" },
		{ "sessname = s device_path=d",
		  -EINVAL, 0, 8, "sessname needs a value: sessname=NAME" },
		/* unknown keys */
		{ "sesname=s device_path=d",
		  -EINVAL, 0, 7, "unknown key \"sesname\", did you mean \"sessname\"?" },
		{ "SESSNAME=s device_path=d",
		  -EINVAL, 0, 8, "unknown key \"SESSNAME\", did you mean \"sessname\"?" },
		{ "sessname=s devicepath=d",
		  -EINVAL, 11, 10, "unknown key \"devicepath\", did you mean \"device_path\"?" },
		{ REQ "polcy=min-latency", -EINVAL, N, 5,
		  "unknown key \"polcy\", did you mean \"policy\"?" },
		{ REQ "acces=ro", -EINVAL, N, 5,
		  "unknown key \"acces\", did you mean \"access\"?" },
		{ REQ "pth=ip:1.0.0.1", -EINVAL, N, 3,
		  "unknown key \"pth\", did you mean \"path\"?" },
		{ REQ "dst_port=1", -EINVAL, N, 8,
		  "unknown key \"dst_port\", did you mean \"dest_port\"?" },
		{ REQ "queue_depth=1", -EINVAL, N, 11, "unknown key \"queue_depth\"" },
		{ REQ "x=1", -EINVAL, N, 1, "unknown key \"x\"" },
		{ REQ "uuid=1", -EINVAL, N, 4, "unknown key \"uuid\"" },
		{ REQ X50 "=1", -EINVAL, N, 50, "unknown key \"" X32 "\"" },
		{ REQ "access_mode_=ro", -EINVAL, N, 12,
		  "unknown key \"access_mode_\", did you mean \"access_mode\"?" },
		/* twice */
		{ REQ "sessname=t", -EINVAL, N + 9, 1, "sessname is given twice" },
		{ REQ "session=s", -EINVAL, N + 8, 1, "sessname is given twice" },
		{ REQ "device_path=d", -EINVAL, N + 12, 1, "device_path is given twice" },
		{ REQ "hold=1 hold=1", -EINVAL, N + 12, 1, "hold is given twice" },
		{ REQ "access_mode=ro ro", -EINVAL, N + 15, 2, "access_mode is given twice" },
		{ REQ "ro rw", -EINVAL, N + 3, 2, "access_mode is given twice" },
		{ REQ "dest_port=1 port=1", -EINVAL, N + 17, 1, "dest_port is given twice" },
		{ REQ "path=ip:1.0.0.1 path=ip:1.0.0.1", -EINVAL, N + 21, 10,
		  "path: \"ip:1.0.0.1\" is given twice" },
		{ REQ "path=ip:1.0.0.1,ip:1.0.0.2 path=1.0.0.1@1.0.0.2", -EINVAL, N + 32, 15,
		  "path: \"1.0.0.1@1.0.0.2\" is given twice" },
		/* names */
		{ "sessname=a/b device_path=d", -EINVAL, 10, 1, "sessname must not contain '/'" },
		{ "sessname=a.b device_path=d", -EINVAL, 10, 1, "sessname must not contain '.'" },
		{ "sessname=. device_path=d", -EINVAL, 9, 1, "sessname must not contain '.'" },
		{ "sessname=a\xe2\x80\x8b device_path=d", -EINVAL, 10, 3,
		  "sessname must not contain an invisible character: zero-width space, U+200B" },
		{ "sessname=\xc2\xa0 device_path=d", -EINVAL, 9, 2,
		  "sessname must not contain an invisible character: no-break space, U+00A0" },
		{ "device_path=d sessname=clt@1.0.0.1",
		  -EINVAL, 28, 1, "sessname must not contain '.'" },
		{ "sessname=" X254 "x device_path=d", -EINVAL, 9, 255,
		  "sessname is 255 bytes long, at most 254 are possible" },
		{ "sessname=s device_path=" X254 "x", -EINVAL, 23, 255,
		  "device_path is 255 bytes long, at most 254 are possible" },
		{ "sessname=s device_path=" X254 "xx", -EINVAL, 23, 256,
		  "device_path is 256 bytes long, at most 254 are possible" },
		{ REQ "name=a/b", -EINVAL, N + 6, 1,
		  "name is made of letters, digits, '.', '_' and '-', and "
		  "does not begin with '.'" },
		{ REQ "name=..", -EINVAL, N + 5, 1,
		  "name is made of letters, digits, '.', '_' and '-', and "
		  "does not begin with '.'" },
		{ REQ "name=\xc3\xa4", -EINVAL, N + 5, 1,
		  "name is made of letters, digits, '.', '_' and '-', and "
		  "does not begin with '.'" },
		{ REQ "name=" X32 X32 "x", -EINVAL, N + 5, 65,
		  "name is 65 bytes long, at most 64 are possible" },
		/* numbers */
		{ REQ "dest_port=-1", -EINVAL, N + 10, 2,
		  "dest_port: -1 is out of range, 0 to 65535 are possible" },
		{ REQ "dest_port=65536", -EINVAL, N + 10, 5,
		  "dest_port: 65536 is out of range, 0 to 65535 are possible" },
		{ REQ "dest_port=99999999999", -EINVAL, N + 10, 11,
		  "dest_port: 99999999999 is out of range, 0 to 65535 are possible" },
		{ REQ "dest_port=9999999999999999999999", -EINVAL, N + 10, 22,
		  "dest_port: \"9999999999999999999999\" is not a number from 0 to 65535" },
		{ REQ "dest_port=http", -EINVAL, N + 10, 4,
		  "dest_port: \"http\" is not a number from 0 to 65535" },
		{ REQ "dest_port=12a", -EINVAL, N + 10, 3,
		  "dest_port: \"12a\" is not a number from 0 to 65535" },
		{ REQ "dest_port=0x", -EINVAL, N + 10, 2,
		  "dest_port: \"0x\" is not a number from 0 to 65535" },
		{ REQ "dest_port=0xg", -EINVAL, N + 10, 3,
		  "dest_port: \"0xg\" is not a number from 0 to 65535" },
		{ REQ "dest_port=01234", -EINVAL, N + 10, 5,
		  "dest_port: \"01234\" is not a number from 0 to 65535" },
		{ REQ "dest_port=1.5", -EINVAL, N + 10, 3,
		  "dest_port: \"1.5\" is not a number from 0 to 65535" },
		{ REQ "dest_port=--1", -EINVAL, N + 10, 3,
		  "dest_port: \"--1\" is not a number from 0 to 65535" },
		{ REQ "dest_port=+", -EINVAL, N + 10, 1,
		  "dest_port: \"+\" is not a number from 0 to 65535" },
		{ REQ "nr_poll_queues=-2", -EINVAL, N + 15, 2,
		  "nr_poll_queues: -2 is out of range, -1 to 4094 are possible" },
		{ REQ "nr_poll_queues=4095", -EINVAL, N + 15, 4,
		  "nr_poll_queues: 4095 is out of range, -1 to 4094 are possible" },
		{ REQ "hold=-2", -EINVAL, N + 5, 2,
		  "hold: -2 is out of range, -1 to 2147483 are possible" },
		{ REQ "hold=30s", -EINVAL, N + 5, 3,
		  "hold: \"30s\" is not a number from -1 to 2147483" },
		{ REQ "hold=infinity", -EINVAL, N + 5, 8,
		  "hold: \"infinity\" is not a number from -1 to 2147483" },
		{ REQ "io_timeout=-1", -EINVAL, N + 11, 2,
		  "io_timeout: -1 is out of range, 0 to 2147483 are possible" },
		{ REQ "hb_interval_ms=99", -EINVAL, N + 15, 2,
		  "hb_interval_ms: 99 is out of range, 100 to 60000 are possible" },
		{ REQ "hb_misses=0", -EINVAL, N + 10, 1,
		  "hb_misses: 0 is out of range, 1 to 100 are possible" },
		{ REQ "max_reconnect_attempts=10000", -EINVAL, N + 23, 5,
		  "max_reconnect_attempts: 10000 is out of range, -1 to 9999 are possible" },
		{ REQ "max_reconnect_attempts=-2", -EINVAL, N + 23, 2,
		  "max_reconnect_attempts: -2 is out of range, -1 to 9999 are possible" },
		{ REQ "reconnect_delay_ms=2000", -EINVAL, N + 23, 0,
		  "reconnect_delay_ms (2000) is above reconnect_max_ms (1000)" },
		{ REQ "auth=a.b", -EINVAL, N + 6, 1,
		  "auth is made of letters, digits, '_' and '-'" },
		{ REQ "auth=", -EINVAL, N + 5, 0, "auth has no value" },
		{ REQ "auth=" X32 X32, -EINVAL, N + 5, 64,
		  "auth is 64 bytes long, at most 63 are possible" },
		{ REQ "reconnect_max_ms=50 ro", -EINVAL, N + 22, 0,
		  "reconnect_delay_ms (100) is above reconnect_max_ms (50)" },
		/* words with a meaning */
		{ REQ "access_mode=RW", -EINVAL, N + 12, 2,
		  "access_mode: \"RW\" is not ro, rw or migration" },
		{ REQ "access_mode=r", -EINVAL, N + 12, 1,
		  "access_mode: \"r\" is not ro, rw or migration" },
		{ REQ "access_mode=ro|rw", -EINVAL, N + 12, 5,
		  "access_mode: \"ro|rw\" is not ro, rw or migration" },
		{ REQ "policy=fastest", -EINVAL, N + 7, 7,
		  "policy: \"fastest\" is not round-robin, min-inflight or min-latency" },
		{ REQ "policy=rr:rr", -EINVAL, N + 7, 5,
		  "policy: \"rr:rr\" is not round-robin, min-inflight or min-latency" },
		{ REQ "policy=m", -EINVAL, N + 7, 1,
		  "policy: \"m\" is not round-robin, min-inflight or min-latency" },
		{ REQ "write_zeroes=yes", -EINVAL, N + 13, 3,
		  "write_zeroes: \"yes\" is not auto, on or off" },
		{ REQ "unflushed=yes", -EINVAL, N + 10, 3,
		  "unflushed: \"yes\" is not auto, replay, fence or ignore" },
		{ REQ "write_cache=1", -EINVAL, N + 12, 1,
		  "write_cache: \"1\" is not auto, on or off" },
		{ REQ "io_mode=bio", -EINVAL, N + 8, 3,
		  "io_mode: \"bio\" is not blockio or fileio" },
		/* paths */
		{ REQ "path=nfs:1.0.0.1", -EPROTONOSUPPORT, N + 5, 11,
		  "path: \"nfs:1.0.0.1\": unknown kind of address: 'ip:' or 'gid:' expected" },
		{ REQ "path=ip:1.0.0.1,nfs:1.0.0.1", -EPROTONOSUPPORT, N + 5, 22,
		  "path: \"ip:1.0.0.1,nfs:1.0.0.1\": unknown kind of "
		  "address: 'ip:' or 'gid:' expected" },
		{ REQ "path=nfs:1.0.0.1,ip:1.0.0.1", -EINVAL, N + 5, 22,
		  "path: \"nfs:1.0.0.1,ip:1.0.0.1\": unknown kind of "
		  "address: 'ip:' or 'gid:' expected" },
		{ REQ "path=store1", -EINVAL, N + 5, 6,
		  "path: \"store1\": not an address, and the driver resolves no names of hosts" },
		{ REQ "path=ip:0.0.0.0", -EINVAL, N + 5, 10,
		  "path: \"ip:0.0.0.0\": destination is the unspecified address" },
		{ REQ "path=ip:1.0.0.1,gid:fe80::1", -EINVAL, N + 5, 22,
		  "path: \"ip:1.0.0.1,gid:fe80::1\": source and "
		  "destination are of different kinds" },
		{ REQ
		  "path=1.0.0.1 path=1.0.0.2 path=1.0.0.3 path=1.0.0.4 "
		  "path=1.0.0.5 path=1.0.0.6 path=1.0.0.7",
		  -ENOMEM, N + 83, 7,
		  "more than 6 paths; add_path takes more once the session is up" },
		/* bytes */
		{ "sessname=s device_path=d\r\n",
		  -EINVAL, 24, 1, "carriage return: is this a DOS text file?" },
		{ "sessname=s\ndevice_path=d", -EINVAL, 10, 1, "control character 0x0a" },
		{ "sessname=\x1b[2J device_path=d", -EINVAL, 9, 1, "control character 0x1b" },
		{ "sessname=a\x7f device_path=d", -EINVAL, 10, 1, "control character 0x7f" },
		{ "sessname=s device_path=a b", -EINVAL, 25, 1, "\"b\" is not key=value" },
		{ "sessname=s device_path=a\tb", -EINVAL, 25, 1, "\"b\" is not key=value" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("row %zu: %.80s", i, rows[i].line);
		CHECK_EQ(parse(rows[i].line, &map), rows[i].rc);
		CHECK_EQ(err.pos, rows[i].pos);
		CHECK_EQ(err.len, rows[i].len);
		CHECK_STR(err.msg, rows[i].msg);
	}
	CHECK(ARRAY_SIZE(rows) > 60);
}

UNIT_TEST(bytes_that_no_string_holds)
{
	static const char nul[] = "sessname=s\0device_path=d";
	char line[IBNBD_MAP_LINE_MAX + 3];

	CHECK_EQ(ibnbd_mapopt_parse(nul, sizeof(nul) - 1, &map, &err), -EINVAL);
	CHECK_EQ(err.pos, 10);
	CHECK_STR(err.msg, "control character 0x00");

	memset(line, ' ', sizeof(line));
	memcpy(line, REQ, N);
	CHECK_EQ(ibnbd_mapopt_parse(line, IBNBD_MAP_LINE_MAX, &map, &err), 0);
	line[IBNBD_MAP_LINE_MAX] = '\n';
	CHECK_EQ(ibnbd_mapopt_parse(line, IBNBD_MAP_LINE_MAX + 1, &map, &err), 0);
	line[IBNBD_MAP_LINE_MAX] = 'x';
	CHECK_EQ(ibnbd_mapopt_parse(line, IBNBD_MAP_LINE_MAX + 1, &map, &err), -EINVAL);
	CHECK_EQ(err.pos, IBNBD_MAP_LINE_MAX);
	CHECK_EQ(err.len, 1);
	CHECK_STR(err.msg, "the line is longer than 4096 bytes");
}

UNIT_TEST(set_single_keys)
{
	static const struct {
		const char *key, *value;
		int rc;
		size_t pos;
		const char *msg;
	} rows[] = {
		{ "sessname", "s", 0, 0, NULL },
		{ "device-path", "d", 0, 0, NULL },
		{ "path", "ip:1.0.0.1", 0, 0, NULL },
		{ "path", "ip:1.0.0.2", 0, 0, NULL },
		{ "access-mode", "ro", 0, 0, NULL },
		{ "access", "rw", -EINVAL, 0, "access_mode is given twice" },
		{ "acess", "rw", -EINVAL, 0, "unknown key \"acess\", did you mean \"access\"?" },
		{ "hold", "a lot", -EINVAL, 1, "a value cannot contain blanks" },
		{ "hold", "5\t", -EINVAL, 1, "control character 0x09" },
		{ "name", "", -EINVAL, 0, "name has no value" },
		{ "name", "a/b", -EINVAL, 1,
		  "name is made of letters, digits, '.', '_' and '-', and "
		  "does not begin with '.'" },
		{ "ro", "x", -EINVAL, 0, "unknown key \"ro\"" },
	};
	char out[256];
	size_t i;

	ibnbd_mapopt_init(&map);
	CHECK_EQ(ibnbd_mapopt_finish(&map, &err), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s=%s", rows[i].key, rows[i].value);
		err.msg[0] = 0;
		CHECK_EQ(ibnbd_mapopt_set(&map, rows[i].key, rows[i].value, &err), rows[i].rc);
		if (!rows[i].msg)
			continue;
		CHECK_EQ(err.pos, rows[i].pos);
		CHECK_STR(err.msg, rows[i].msg);
	}
	CHECK_EQ(ibnbd_mapopt_finish(&map, &err), 0);
	CHECK(mapopt_format(&map, out, sizeof(out)) > 0);
	CHECK_STR(out, "sessname=s path=ip:1.0.0.1 path=ip:1.0.0.2 device_path=d access_mode=ro");
}

UNIT_TEST(format_into_small_buffers)
{
	char full[256], out[256];
	size_t size;
	int n;

	CHECK_EQ(parse(REQ "path=ip:10.0.0.1,ip:10.0.0.2 ro hold=-1 name=x", &map), 0);
	n = mapopt_format(&map, full, sizeof(full));
	CHECK(n > 60);
	for (size = 0; size <= (size_t)n + 1; size++) {
		char *small = unit_exact(out, size);

		UNIT_ROW("%zu bytes", size);
		CHECK_EQ(mapopt_format(&map, small, size), size <= (size_t)n ? -EMSGSIZE : n);
		free(small);
	}
}

/* The longest line that can be accepted still fits where lines fit. */
UNIT_TEST(longest_canonical_line)
{
	static char line[IBNBD_MAP_LINE_MAX + 1], out[IBNBD_MAP_LINE_MAX + 1];
	size_t n;
	int i;

	n = (size_t)snprintf(line, sizeof(line), "sessname=%s device_path=%s name=%s",
			     X254, X254, X32 X32);
	for (i = 0; i < 6; i++)
		n += (size_t)snprintf(
			line + n, sizeof(line) - n,
			" path=ip:fe80::ffff:ffff:ffff:%d%%verylongifname0"
			"@ip:fe80::ffff:ffff:ffff:%d%%verylongifname0", 1000 + i, 2000 + i);
	snprintf(
		line + n, sizeof(line) - n,
		" dest_port=65535 migration nr_poll_queues=4094 hold=2147483 group=%s failfast=3600 "
		"io_timeout=2147483 "
		"hb_interval_ms=60000 hb_misses=100 reconnect_delay_ms=60000 "
		"reconnect_max_ms=600000 max_reconnect_attempts=9999 policy=mi auth=%s "
		"write_zeroes=auto write_cache=auto unflushed=ignore retain_mb=65536 "
		"io_mode=blockio input_mode=rq", X32 X32, X32 X32 + 1);
	CHECK_EQ(parse(line, &map), 0);
	CHECK(mapopt_format(&map, out, sizeof(out)) > 1400);
	CHECK_EQ(parse(out, &map2), 0);
	CHECK_MEM(&map2, &map, sizeof(map));
}

UNIT_TEST(table_is_sane)
{
	const struct ibnbd_mapopt *t = ibnbd_mapopts;
	const size_t n = IBNBD_MAPOPT_COUNT;
	size_t i, j;

	for (i = 0; i < n; i++) {
		UNIT_ROW("%s", t[i].key);
		CHECK(t[i].help && *t[i].help);
		CHECK(t[i].value && *t[i].value);
		CHECK_EQ(!!t[i].words, t[i].kind == IBNBD_KIND_WORD);
		CHECK(t[i].kind != IBNBD_KIND_INT ||
		      (t[i].min <= t[i].def && t[i].def <= t[i].max));
		CHECK(strlen(t[i].key) <= 31);
		for (j = 0; j < n; j++) {
			CHECK(i == j || strcmp(t[i].key, t[j].key));
			CHECK(!t[i].alias || strcmp(t[i].alias, t[j].key));
			CHECK(i == j || !t[i].alias || !t[j].alias ||
			      strcmp(t[i].alias, t[j].alias));
		}
	}
}

UNIT_TEST(words_back)
{
	char out[32];

	CHECK_EQ(ibnbd_mapopt_word(IBNBD_OPT_policy, IBNBD_POLICY_MIN_LATENCY, out, sizeof(out)),
		 11);
	CHECK_STR(out, "min-latency");
	ibnbd_mapopt_word(IBNBD_OPT_access_mode, IBNBD_ACCESS_RO, out, sizeof(out));
	CHECK_STR(out, "ro");
	ibnbd_mapopt_word(IBNBD_OPT_access_mode, 3, out, sizeof(out));
	CHECK_STR(out, "?");
	ibnbd_mapopt_word(IBNBD_OPT_access_mode, -1, out, sizeof(out));
	CHECK_STR(out, "?");
	ibnbd_mapopt_word(IBNBD_OPT_hold, 0, out, sizeof(out));
	CHECK_STR(out, "?");
	ibnbd_mapopt_word(99, 0, out, sizeof(out));
	CHECK_STR(out, "?");
}

/* docs/sysfs.md has a row for every key, with its alias, its range and its default. */
UNIT_TEST(documented)
{
	const struct ibnbd_mapopt *t = ibnbd_mapopts;
	char line[1024], start[64], text[80];
	size_t i;
	FILE *f;

	for (i = 0; i < IBNBD_MAPOPT_COUNT; i++) {
		bool found = false;

		UNIT_ROW("%s", t[i].key);
		snprintf(start, sizeof(start), "| %s ", t[i].key);
		f = fopen("../../docs/sysfs.md", "r");
		if (!CHECK(f))
			return;
		while (!found && fgets(line, sizeof(line), f))
			found = !strncmp(line, start, strlen(start)) &&
				strstr(line,
				       t[i].flags & IBNBD_OPT_REQUIRED ? "| required |" : "|");
		fclose(f);
		if (!CHECK(found))
			continue;
		snprintf(text, sizeof(text), "| %s |", t[i].alias ? t[i].alias : "");
		CHECK(!t[i].alias || strstr(line, text));
		if (t[i].kind == IBNBD_KIND_INT) {
			snprintf(text, sizeof(text), "| %d..%d", t[i].min, t[i].max);
			CHECK(strstr(line, text));
			snprintf(text, sizeof(text), "| %d |", t[i].def);
			CHECK(strstr(line, text));
		}
		if (t[i].kind == IBNBD_KIND_WORD && t[i].flags == 0 && i < IBNBD_OPT_io_mode) {
			ibnbd_mapopt_word(i, t[i].def, start, sizeof(start));
			snprintf(text, sizeof(text), "| %s |", start);
			CHECK(strstr(line, text));
		}
	}
}
