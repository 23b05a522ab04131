/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * THE grammar of a mapping (docs/sysfs.md). One table, IBNBD_MAPOPTS below, defines key,
 * kind, range, default and help. The parser of `map_device` and of maps.conf lines, `ibnbd map
 * --key value`, the canonical line, `ibnbd help map`, the shell completion and the option section
 * of the manuals are all made from it.
 *
 * A line is blank-separated words `key=value` in any order; '-' and '_' are the same in a key; a
 * bare `ro`, `rw` or `migration` means access_mode. Empty words and trailing newlines are skipped.
 * Values hold no blanks and no control characters. Only `path` may be repeated.
 *
 * Laws (the fuzzer checks them): parse(format(x)) == x; an accepted line formats to an accepted
 * line; a refusal names position and reason.
 *
 * struct ibnbd_map is about 1.2 KB: in the kernel, allocate it, do not put it on the stack.
 */
#ifndef IBNBD_LOGIC_MAPOPT_H
#define IBNBD_LOGIC_MAPOPT_H

#include <ibtrs/addr.h>
#include <ibtrs/key.h>
#include "ibnbd/proto/wire.h"

#define IBNBD_MAP_PATHS		6	/* at map time; add_path takes more */
#define IBNBD_MAP_NAME_LEN	65	/* name=, with NUL */
#define IBNBD_MAP_LINE_MAX	4096	/* longest line accepted; format() never needs more */
#define IBNBD_MAP_FOREVER	(-1)	/* hold=, max_reconnect_attempts= */

enum ibnbd_policy {		/* the numbers of mpath_policy, docs/sysfs.md */
	IBNBD_POLICY_ROUND_ROBIN	= 0,
	IBNBD_POLICY_MIN_INFLIGHT	= 1,
	IBNBD_POLICY_MIN_LATENCY	= 2,
};

enum ibnbd_write_zeroes {	/* hazard M10 */
	IBNBD_ZEROES_AUTO	= 0,	/* only towards servers that negotiated ZEROES */
	/* the administrator knows that at this server offset 20 means write-zeroes */
	IBNBD_ZEROES_ON		= 1,
	IBNBD_ZEROES_OFF	= 2,
};

enum ibnbd_write_cache {	/* hazard M9 */
	/* flush unless a server of ours says there is nothing to flush */
	IBNBD_CACHE_AUTO	= 0,
	IBNBD_CACHE_ON		= 1,	/* always flush */
	/* believe the server whatever it is: flush only if it says WRITEBACK */
	IBNBD_CACHE_OFF		= 2,
};

enum ibnbd_unflushed_mode {	/* docs/durability.md */
	/* REPLAY towards servers that tell when they may have lost their cache, else IGNORE */
	IBNBD_UNFLUSHED_AUTO	= 0,
	/* send again what may be lost; FENCE where that is not possible */
	IBNBD_UNFLUSHED_REPLAY	= 1,
	/* I/O ends with errors until an administrator accepts the loss */
	IBNBD_UNFLUSHED_FENCE	= 2,
	IBNBD_UNFLUSHED_IGNORE	= 3,	/* continue, as the kernel's own drivers do */
};

enum ibnbd_mapopt_kind {
	IBNBD_KIND_SESSION,	/* 1..254 bytes, no '/', no '.' */
	IBNBD_KIND_DEVICE,	/* 1..254 bytes */
	IBNBD_KIND_NAME,	/* 1..64 of A-Z a-z 0-9 . _ - */
	IBNBD_KIND_KEY,		/* 1..63 of A-Z a-z 0-9 _ - */
	IBNBD_KIND_PATH,	/* [src(@ or ,)]dst */
	IBNBD_KIND_INT,		/* decimal or 0x.., min..max */
	IBNBD_KIND_WORD,	/* one of @words, stored as its index */
};

/*
 * X(field, key, alias, kind, min, max, default, flags, words, value, help) field: member of struct
 * ibnbd_map. words: for WORD, names separated by '|'; a synonym follows its name after ':'. value:
 * how help prints the value. Order here = order of the canonical line. Ranges are for INT.
 */
#define IBNBD_MAPOPTS(X) \
X(sessname, "sessname", "session", SESSION, 0, 0, 0, IBNBD_OPT_REQUIRED, NULL, "NAME", \
	"session to use; opened when it does not exist yet") \
X(path, "path", "server", PATH, 0, 0, 0, IBNBD_OPT_REPEAT, NULL, "[SRC,]DST", \
	"a path to the server, ip:ADDR or gid:GID, up to 6 times; needed for the first mapping of a session") \
X(device_path, "device_path", "device", DEVICE, 0, 0, 0, IBNBD_OPT_REQUIRED, NULL, "PATH", \
	"export on the server, below its search path") \
X(dest_port, "dest_port", "port", INT, 0, 65535, IBTRS_DEFAULT_PORT, 0, NULL, "PORT", \
	"the server's port") \
X(access_mode, "access_mode", "access", WORD, 0, 0, IBNBD_ACCESS_RW, 0, "ro|rw|migration", "MODE", \
	"ro, rw (one writer), or migration (two writers while a machine moves)") \
X(nr_poll_queues, "nr_poll_queues", "poll_queues", INT, -1, 4094, 0, 0, NULL, "N", \
	"queues that poll; -1 = one per CPU; needs a session of its own") \
X(hold, "hold", "hold_seconds", INT, -1, 2147483, 100, 0, NULL, "SECONDS", \
	"hold I/O so long while no path is up, or path after path loses it, or the server cannot open the disk yet, then fail it; 0 = at once, -1 = never") \
X(group, "group", NULL, NAME, 0, 0, 0, 0, NULL, "NAME", \
	"the mirror of which this disk is a leg: see failfast") \
X(failfast, "failfast", NULL, INT, 1, 3600, 5, 0, NULL, "SECONDS", \
	"how long a request that the mirror can do without waits while another leg of the group is there") \
X(io_timeout, "io_timeout", "timeout", INT, 0, 2147483, 0, 0, NULL, "SECONDS", \
	"break the path under a request that is not answered for so long; 0 = never") \
X(hb_interval_ms, "hb_interval_ms", "hb_interval", INT, 100, 60000, 1000, 0, NULL, "MS", \
	"heartbeat interval of the session's paths") \
X(hb_misses, "hb_misses", NULL, INT, 1, 100, 3, 0, NULL, "N", \
	"heartbeats in a row that may stay unanswered") \
X(reconnect_delay_ms, "reconnect_delay_ms", "reconnect_delay", INT, 10, 60000, 100, 0, NULL, "MS", \
	"delay before the first reconnect attempt; doubles with each failure") \
X(reconnect_max_ms, "reconnect_max_ms", "reconnect_max", INT, 10, 600000, 1000, 0, NULL, "MS", \
	"longest delay between attempts while I/O is held") \
X(max_reconnect_attempts, "max_reconnect_attempts", "max_reconnect", INT, -1, 9999, -1, 0, NULL, \
	"N", \
	"give a path up after so many attempts; -1 = never, 0 = do not reconnect") \
X(policy, "policy", "mpath_policy", WORD, 0, 0, IBNBD_POLICY_MIN_INFLIGHT, 0, \
	"round-robin:rr|min-inflight:mi|min-latency:ml", "POLICY", \
	"which path takes a request: round-robin, min-inflight or min-latency") \
X(auth, "auth", "key", KEY, 0, 0, 0, 0, NULL, "KEY", \
	"both sides prove that they have the key of this name, see ibnbd key; without it neither side is authenticated") \
X(write_zeroes, "write_zeroes", NULL, WORD, 0, 0, IBNBD_ZEROES_AUTO, 0, "auto|on|off", "WHEN", \
	"send WRITE_ZEROES: auto = to servers that negotiated it; on only for peers known to mean it") \
X(write_cache, "write_cache", NULL, WORD, 0, 0, IBNBD_CACHE_AUTO, 0, "auto|on|off", "WHEN", \
	"send flushes: auto = unless the server is known to need none; off = only if it announces a write cache") \
X(unflushed, "unflushed", NULL, WORD, 0, 0, IBNBD_UNFLUSHED_AUTO, 0, "auto|replay|fence|ignore", "WHAT", \
	"unflushed writes that the server may have lost: send them again, fence the disk, or ignore the loss; auto = replay if the server reports its cache") \
X(retain_mb, "retain_mb", NULL, INT, 1, 65536, 64, 0, NULL, "MIB", \
	"memory of the session for writes that unflushed=replay keeps") \
X(name, "name", NULL, NAME, 0, 0, 0, 0, NULL, "NAME", \
	"a name of your own; becomes /dev/ibnbd/by-name/NAME") \
X(io_mode, "io_mode", NULL, WORD, 0, 0, 0, 0, "blockio|fileio", "MODE", \
	"accepted for old scripts; the server decides") \
X(input_mode, "input_mode", NULL, WORD, 0, 0, 0, 0, "mq|rq", "MODE", \
	"accepted for old scripts; always mq")

enum ibnbd_mapopt_id {
#define IBNBD_MAPOPT_ENUM(field, ...) IBNBD_OPT_##field,
	IBNBD_MAPOPTS(IBNBD_MAPOPT_ENUM)
#undef IBNBD_MAPOPT_ENUM
	IBNBD_MAPOPT_COUNT
};

/* Numbers that belong to the session; struct ibtrs_clt_opts has them by the same names. */
#define IBNBD_SESSION_NUMBERS(X) \
X(dest_port) X(nr_poll_queues) X(hb_interval_ms) X(hb_misses) X(reconnect_delay_ms) \
X(reconnect_max_ms) X(max_reconnect_attempts) X(policy)

enum ibnbd_mapopt_bit {		/* of struct ibnbd_map, given */
#define IBNBD_SESSION_BIT(field) 1u << IBNBD_OPT_##field |
	IBNBD_SESSION_OPTS = IBNBD_SESSION_NUMBERS(IBNBD_SESSION_BIT) 1u << IBNBD_OPT_auth,
#undef IBNBD_SESSION_BIT
};

enum {				/* flags of an option */
	IBNBD_OPT_REQUIRED	= 0x1,
	IBNBD_OPT_REPEAT	= 0x2,
};

/**
 * struct ibnbd_map - a mapping as asked for
 * @given: bit 1 << IBNBD_OPT_x for each key that was set; all others hold their default
 *
 * The other fields are the keys of the table. WORD keys hold the enum of the same name.
 * The keys of IBNBD_SESSION_OPTS belong to the session. retain_mb sizes the session's pool: the
 * first device that needs the pool decides. All other keys belong to the device.
 */
struct ibnbd_map {
	u32 given;
	unsigned int nr_paths;
	struct ibtrs_addr_pair path[IBNBD_MAP_PATHS];
	char sessname[IBNBD_NAME_LEN];
	char device_path[IBNBD_NAME_LEN];
	char name[IBNBD_MAP_NAME_LEN];
	char group[IBNBD_MAP_NAME_LEN];
	char auth[IBTRS_KEY_NAME_LEN];
	int dest_port;
	int access_mode;		/* enum ibnbd_access */
	int nr_poll_queues;
	int hold;			/* seconds */
	int failfast;			/* seconds */
	int io_timeout;			/* seconds */
	int hb_interval_ms;
	int hb_misses;
	int reconnect_delay_ms;
	int reconnect_max_ms;
	int max_reconnect_attempts;
	int policy;			/* enum ibnbd_policy */
	int write_zeroes;		/* enum ibnbd_write_zeroes */
	int write_cache;		/* enum ibnbd_write_cache */
	int unflushed;			/* enum ibnbd_unflushed_mode */
	int retain_mb;
	int io_mode;
	int input_mode;
};

static inline bool ibnbd_map_given(const struct ibnbd_map *m, enum ibnbd_mapopt_id id)
{
	return m->given & 1u << id;
}

/**
 * struct ibnbd_mapopt_err - why a line was refused
 * @pos: byte offset of the mistake in the line (in the value for ibnbd_mapopt_set())
 * @len: length of the mistake in bytes; 0 = something is missing at @pos
 * @msg: the reason in words, always NUL-terminated, free of control characters
 */
struct ibnbd_mapopt_err {
	size_t pos;
	size_t len;
	char msg[160];
};

/* A row of the table, for help, completion and the manuals. */
struct ibnbd_mapopt {
	const char *key;
	const char *alias;	/* NULL = none */
	enum ibnbd_mapopt_kind kind;
	int min, max, def;
	unsigned int flags;
	const char *words;	/* "a|b:synonym|c" */
	const char *value;	/* placeholder in help */
	const char *help;
	u16 offset, size;	/* of the field in struct ibnbd_map */
};

extern const struct ibnbd_mapopt ibnbd_mapopts[IBNBD_MAPOPT_COUNT];

/* Sets all keys to their defaults; no key counts as given. */
void ibnbd_mapopt_init(struct ibnbd_map *m);

/**
 * ibnbd_mapopt_parse() - a whole line
 * @line: need not be NUL-terminated
 * @m: the result; undefined on refusal
 * @err: position and reason of a refusal
 *
 * Return: 0; -EINVAL: syntax, unknown or repeated key, bad value, missing sessname or device_path;
 * -ENOMEM: more than six paths; -EPROTONOSUPPORT: destination address with an unknown prefix (all
 * as docs/sysfs.md). A missing path= is not an error here: the caller knows whether the session
 * exists (-ENXIO if not).
 */
int ibnbd_mapopt_parse(const char *line, size_t len, struct ibnbd_map *m,
		       struct ibnbd_mapopt_err *err);

/*
 * Sets one key, for `--key value`. Rules and errors are the same; @err->pos counts from the start
 * of @value (for an unknown key: of @key).
 */
int ibnbd_mapopt_set(struct ibnbd_map *m, const char *key, const char *value,
		     struct ibnbd_mapopt_err *err);

/*
 * Checks what can be checked only when all keys are set: the required keys are given, and the
 * delays fit each other. ibnbd_mapopt_parse() calls it at its end.
 */
int ibnbd_mapopt_finish(const struct ibnbd_map *m, struct ibnbd_mapopt_err *err);

/*
 * Prints the word of a WORD option for a value ("rw", "min-latency"), "?" when out of range. Return
 * the length written.
 */
int ibnbd_mapopt_word(enum ibnbd_mapopt_id id, int value, char *buf, size_t size);

#endif
