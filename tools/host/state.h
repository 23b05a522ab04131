/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that the drivers show, read once. Text is NULL and a number SYSFS_UNKNOWN where the driver
 * does not say. The objects are read one after another: what disappears meanwhile has holes.
 */
#ifndef TOOLS_STATE_H
#define TOOLS_STATE_H

#include "tools/host/sysfs.h"

#define STATE_CLIENT	"class/ibnbd-client/ctl"
#define STATE_SERVER	"class/ibnbd-server/ctl"

struct state_path {
	char *dir;		/* in sysfs */
	char *side;		/* "client" or "server" */
	char *name;		/* src@dst */
	char *session;
	char *src_addr, *dst_addr;
	char *state, *state_detail;
	/* it has failed so often lately that it is used less than the others */
	bool marginal;
	char *hca_name;
	int64_t hca_port;
	int64_t latency;	/* ns */
	int64_t reads, read_bytes, writes, write_bytes, inflight, failovers;
	int64_t reconnects, reconnects_failed;
};

struct state_session {
	char *dir;
	char *side;
	char *name;
	char *policy;
	char *auth;		/* name of the key that was proved; empty: none */
	char *state;		/* up, degraded, down */
	int64_t max_reconnect_attempts;
	int64_t dest_port;
	int64_t hb_interval_ms, hb_misses, reconnect_delay_ms, reconnect_max_ms;
	int64_t nr_paths, nr_up, nr_devices;
	int64_t read_bytes, write_bytes, inflight, reconnects;
	char *path_states;	/* a letter for each path: U up, _ not */
	struct state_path *paths;
};

struct state_dev {
	char *dir;		/* /sys/block/ibnbdN */
	char *kname;
	char *path;		/* /dev/ibnbdN */
	char *name;
	char *link;		/* /dev/ibnbd/by-name/NAME */
	char *session;
	char *device_path;
	char *state, *state_detail, *reason;
	char *access_mode;
	char *identity, *features;
	char *write_zeroes, *write_cache, *unflushed, *kept;
	char *devno;		/* major:minor */
	int64_t size;		/* bytes */
	int64_t read_only;
	int64_t nr_poll_queues, hold, io_timeout, unflushed_bytes, losses;
	int64_t paths, paths_up;
	int64_t reads, read_bytes, read_ms, writes, write_bytes, write_ms, inflight, busy_ms,
		discards, flushes;
};

struct state_open {
	char *dir;
	char *export;
	char *session;		/* name of the directory: SESSION, or SESSION#2 */
	char *mapping_path;
	char *access_mode;
	int64_t read_only, device_id;
	int64_t claimed;	/* the export is, and this is one of those it is claimed for */
};

struct state_export {
	char *dir;
	char *name;
	char *block_dev;	/* kernel name, or NULL for a file */
	char *kind;		/* "block" or "file" */
	char *identity, *copy;
	int64_t size;		/* bytes */
	int64_t nr_opens, claimed;
	struct state_open *opens;
};

struct state {
	bool client, server;	/* loaded? */
	struct state_dev *devs;
	struct state_session *sessions;		/* client side */
	struct state_session *srv_sessions;
	struct state_export *exports;
	size_t nr_devs, nr_sessions, nr_srv_sessions, nr_exports;
};

struct state *state_read(void);
void state_free(struct state *s);

struct state_session *state_session(struct state *s, const char *name);
/* @word of a user: the name, or as the outputs escape it. */
struct state_session *state_session_said(struct state *s, const char *word);
/*
 * ibnbdN, /dev/ibnbdN, a name, a link, DEVICE@SESSION, or DEVICE when it is the only one; as it is,
 * or as the outputs escape it. @why tells what was wrong.
 */
struct state_dev *state_dev(struct state *s, const char *word, char **why);
struct state_dev *state_dev_of(struct state *s, const char *session, const char *device_path);
/* Name of the link in ctl/devices. Allocated. */
char *state_dev_link(const char *session, const char *device_path);

#endif
