// SPDX-License-Identifier: GPL-2.0-only
/*
 * The columns of each kind of object. The keys are an interface: they are never renamed, only added
 * (schema ibnbd/1).
 */
#include "tools/out/table.h"

#define COLUMN(type, key, heading, kind, help) \
	{ #key, heading, TABLE_##kind, offsetof(struct type, key), help }
#define SET(name, type, columns_, usual_) \
	const struct table_set table_##name = { .what = #name, .columns = columns_, \
						.nr = sizeof(columns_) / sizeof(columns_[0]), \
						.size = sizeof(struct type), .usual = usual_ }

#define D(...) COLUMN(state_dev, __VA_ARGS__)
static const struct table_column dev_columns[] = {
	D(kname, "KNAME", TEXT, "name in the kernel"),
	D(path, "PATH", TEXT, "device node"),
	D(name, "NAME", TEXT, "name given with name= or in maps.conf"),
	D(link, "LINK", TEXT, "link below /dev/ibnbd/by-name"),
	D(devno, "MAJ:MIN", TEXT, "number of the device"),
	D(size, "SIZE", BYTES, "size"),
	D(session, "SESSION", TEXT, "session to the server"),
	D(device_path, "DEVICE", TEXT, "what it is called on the server"),
	D(state, "STATE", TEXT, "init, open, closed, unmapped"),
	D(state_detail, "DETAIL", TEXT, "init, open, held, replaying, failed, fenced, unmapped"),
	D(reason, "REASON", TEXT, "why it does not work"),
	D(access_mode, "ACCESS", TEXT, "ro, rw, migration"),
	D(read_only, "RO", FLAG, "read-only here"),
	D(paths_up, "UP", NUM, "paths of the session that work"),
	D(paths, "PATHS", NUM, "paths of the session"),
	D(nr_poll_queues, "POLLQ", NUM, "queues that poll"),
	D(hold, "HOLD", NUM,
	  "seconds that I/O is held while no path is up, or path after path loses it, -1 = for ever"),
	D(io_timeout, "IOTIMEOUT", NUM,
	  "seconds until a request that is not answered breaks its path"),
	D(identity, "IDENTITY", TEXT, "which disk it is, as the server says"),
	D(features, "FEATURES", TEXT, "negotiated with the server"),
	D(write_zeroes, "ZEROES", TEXT, "WRITE_ZEROES is sent: auto, on, off"),
	D(write_cache, "CACHE", TEXT, "flushes are sent: auto, on, off"),
	D(unflushed, "UNFLUSHED", TEXT,
	  "what becomes of it when the server may have lost its cache: auto, replay, fence, ignore"),
	D(unflushed_bytes, "ATRISK", BYTES, "written, and not covered by a flush"),
	D(kept, "KEPT", TEXT, "all of that is kept, to be sent again: no, whole, gap"),
	D(losses, "LOSSES", NUM, "times that remap took the loss of such bytes"),
	D(reads, "READS", NUM, "reads done"),
	D(read_bytes, "READ", BYTES, "bytes read"),
	D(writes, "WRITES", NUM, "writes done"),
	D(write_bytes, "WRITTEN", BYTES, "bytes written"),
	D(discards, "DISCARDS", NUM, "discards done"),
	D(flushes, "FLUSHES", NUM, "flushes done"),
	D(inflight, "INFLIGHT", NUM, "requests under way"),
};
SET(devs, state_dev, dev_columns, "path,name,size,detail,access_mode,session,device_path,up,paths");

#define S(...) COLUMN(state_session, __VA_ARGS__)
static const struct table_column session_columns[] = {
	S(name, "SESSION", TEXT, "name"),
	S(side, "SIDE", TEXT, "client: ours to a server, server: a client's to us"),
	S(state, "STATE", TEXT, "up, degraded, down"),
	S(path_states, "PATHS", TEXT, "a letter for each path: U works, _ does not"),
	S(nr_up, "UP", NUM, "paths that work"),
	S(nr_paths, "NPATHS", NUM, "paths"),
	S(nr_devices, "DEVICES", NUM, "mapped devices"),
	S(policy, "POLICY", TEXT, "which path takes a request"),
	S(auth, "KEY", TEXT, "key that both sides have proved; empty: nothing was proved"),
	S(max_reconnect_attempts, "MAXRECONNECT", NUM,
	  "attempts until a path is given up, -1 = never"),
	S(dest_port, "PORT", NUM, "port of the server"),
	S(hb_interval_ms, "HBINTERVAL", NUM, "milliseconds between heartbeats"),
	S(hb_misses, "HBMISSES", NUM, "heartbeats in a row that may stay unanswered"),
	S(reconnect_delay_ms, "DELAY", NUM, "milliseconds before the first attempt to reconnect"),
	S(reconnect_max_ms, "MAXDELAY", NUM, "longest of these delays while I/O is held"),
	S(read_bytes, "READ", BYTES, "bytes read"),
	S(write_bytes, "WRITTEN", BYTES, "bytes written"),
	S(inflight, "INFLIGHT", NUM, "requests under way"),
	S(reconnects, "RECONNECTS", NUM, "reconnects of its paths"),
};
SET(sessions, state_session, session_columns,
    "name,side,state,path_states,nr_devices,policy,read_bytes,write_bytes,reconnects");

#define P(...) COLUMN(state_path, __VA_ARGS__)
static const struct table_column path_columns[] = {
	P(session, "SESSION", TEXT, "session"),
	P(side, "SIDE", TEXT, "client or server"),
	P(name, "PATH", TEXT, "source@destination"),
	P(src_addr, "SOURCE", TEXT, "source address"),
	P(dst_addr, "DESTINATION", TEXT, "destination address"),
	P(state, "STATE", TEXT, "connected, disconnected"),
	P(state_detail, "DETAIL", TEXT,
	  "idle, connecting, up, breaking, waiting, closing, closed; marginal; and why"),
	P(hca_name, "HCA", TEXT, "RDMA device"),
	P(hca_port, "PORT", NUM, "port of the RDMA device"),
	P(latency, "LATENCY", NS, "round trip of the last heartbeat"),
	P(reads, "READS", NUM, "reads done"),
	P(read_bytes, "READ", BYTES, "bytes read"),
	P(writes, "WRITES", NUM, "writes done"),
	P(write_bytes, "WRITTEN", BYTES, "bytes written"),
	P(inflight, "INFLIGHT", NUM, "requests under way"),
	P(failovers, "FAILOVERS", NUM, "requests that moved to another path"),
	P(reconnects, "RECONNECTS", NUM, "reconnects"),
	P(reconnects_failed, "FAILED", NUM, "failed reconnects"),
};
SET(paths, state_path, path_columns,
    "session,name,hca_name,hca_port,state,latency,read_bytes,write_bytes,inflight,reconnects");

#define E(...) COLUMN(state_export, __VA_ARGS__)
static const struct table_column export_columns[] = {
	E(name, "EXPORT", TEXT, "name in sysfs: of the block device, or the file's path"),
	E(kind, "KIND", TEXT, "block or file"),
	E(block_dev, "BLOCKDEV", TEXT, "block device"),
	E(size, "SIZE", BYTES, "size"),
	E(nr_opens, "OPENS", NUM, "sessions that have it open"),
	E(identity, "IDENTITY", TEXT, "which disk it is"),
	E(copy, "COPY", TEXT, "private pages for data in transfer"),
	E(claimed, "CLAIMED", FLAG, "kept from this host's own use, for a client writes to it"),
};
SET(exports, state_export, export_columns, "name,kind,size,nr_opens,claimed,copy");

#define O(...) COLUMN(state_open, __VA_ARGS__)
static const struct table_column open_columns[] = {
	O(export, "EXPORT", TEXT, "export"),
	O(session, "SESSION", TEXT, "session"),
	O(mapping_path, "DEVICE", TEXT, "name that the client sent"),
	O(access_mode, "ACCESS", TEXT, "ro, rw, migration"),
	O(read_only, "RO", FLAG, "read-only"),
	O(device_id, "ID", NUM, "number on the wire"),
	O(claimed, "CLAIMED", FLAG, "keeps the disk from this host's own use"),
};
SET(opens, state_open, open_columns, "export,session,mapping_path,access_mode,claimed");
