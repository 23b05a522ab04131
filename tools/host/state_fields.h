/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of the drivers' objects, a row for each. From these tables come the structs of
 * state.h, their readers, the columns of list and the lines of show, the keys of JSON and their
 * schema (make -C tools schema), and what `maps save` and `remap --force` read back (live.c).
 *
 * X(field, heading, kind, file, option, help)
 *	field	member of the struct, key in JSON, word for -o: an interface, so it is never renamed
 *	kind	TEXT, NUM, BYTES, NS, FLAG; all but TEXT are an int64_t
 *	file	of sysfs, below the object's directory; NULL: state.c finds it out
 *	option	of a mapping (a field of IBNBD_MAPOPTS) whose value it is, or none
 *
 * The order is that of show, and of list with -o all.
 */
#ifndef TOOLS_STATE_FIELDS_H
#define TOOLS_STATE_FIELDS_H

/* a disk, /sys/block/ibnbdN */
#define STATE_DEV(X) \
X(kname, "KNAME", TEXT, NULL, none, \
	"name in the kernel") \
X(path, "PATH", TEXT, NULL, none, \
	"device node") \
X(name, "NAME", TEXT, "ibnbd/name", name, \
	"name given with name= or in maps.conf") \
X(link, "LINK", TEXT, NULL, none, \
	"link below /dev/ibnbd/by-name") \
X(devno, "MAJ:MIN", TEXT, "dev", none, \
	"number of the device") \
X(size, "SIZE", BYTES, "size", none, \
	"size") \
X(session, "SESSION", TEXT, "ibnbd/session", sessname, \
	"session to the server") \
X(device_path, "DEVICE", TEXT, "ibnbd/mapping_path", device_path, \
	"what it is called on the server") \
X(state, "STATE", TEXT, "ibnbd/state", none, \
	"init, open, closed, unmapped") \
X(state_detail, "DETAIL", TEXT, "ibnbd/state_detail", none, \
	"init, open, held, failfast, replaying, failed, fenced, unmapped") \
X(reason, "REASON", TEXT, "ibnbd/reason", none, \
	"why it does not work") \
X(access_mode, "ACCESS", TEXT, "ibnbd/access_mode", access_mode, \
	"ro, rw, migration") \
X(read_only, "RO", FLAG, "ro", none, \
	"read-only here") \
X(paths_up, "UP", NUM, NULL, none, \
	"paths of the session that work") \
X(paths, "PATHS", NUM, NULL, none, \
	"paths of the session") \
X(nr_poll_queues, "POLLQ", NUM, "ibnbd/nr_poll_queues", nr_poll_queues, \
	"queues that poll") \
X(hold, "HOLD", NUM, "ibnbd/hold", hold, \
	"seconds that I/O is held while no path is up, or path after path loses it, or the server cannot open the disk yet, -1 = for ever") \
X(group, "GROUP", TEXT, "ibnbd/group", group, \
	"mirror of which it is a leg") \
X(failfast, "FAILFAST", NUM, "ibnbd/failfast", failfast, \
	"seconds until a request fails that the mirror can do without, while another leg is there") \
X(in_sync, "INSYNC", FLAG, "ibnbd/in_sync", none, \
	"the mirror says that the leg has everything") \
X(io_timeout, "IOTIMEOUT", NUM, "ibnbd/io_timeout", io_timeout, \
	"seconds until a request that is not answered breaks its path") \
X(identity, "IDENTITY", TEXT, "ibnbd/identity", none, \
	"which disk it is, as the server says") \
X(features, "FEATURES", TEXT, "ibnbd/features", none, \
	"negotiated with the server") \
X(write_zeroes, "ZEROES", TEXT, "ibnbd/write_zeroes", write_zeroes, \
	"WRITE_ZEROES is sent: auto, on, off") \
X(write_cache, "CACHE", TEXT, "ibnbd/write_cache", write_cache, \
	"flushes are sent: auto, on, off") \
X(unflushed, "UNFLUSHED", TEXT, "ibnbd/unflushed", unflushed, \
	"what becomes of it when the server may have lost its cache: auto, replay, fence, ignore") \
X(retain_mb, "RETAIN", NUM, "ibnbd/retain_mb", retain_mb, \
	"MiB of the session for what unflushed=replay keeps") \
X(unflushed_bytes, "ATRISK", BYTES, "ibnbd/unflushed_bytes", none, \
	"written, and not covered by a flush") \
X(kept, "KEPT", TEXT, "ibnbd/kept", none, \
	"all of that is kept, to be sent again: no, whole, gap") \
X(replays, "REPLAYS", NUM, NULL, none, \
	"times that what was kept was sent again") \
X(replayed_bytes, "REPLAYED", BYTES, NULL, none, \
	"bytes that were sent again") \
X(losses, "LOSSES", NUM, "ibnbd/losses", none, \
	"times that remap took the loss of such bytes") \
X(other_writers, "OTHERS", NUM, "ibnbd/other_writers", none, \
	"times that another client had written when the server opened it again") \
X(oldest_ms, "OLDEST", NUM, "ibnbd/oldest_ms", none, \
	"milliseconds that the oldest request has waited for its answer") \
X(reads, "READS", NUM, NULL, none, \
	"reads done") \
X(read_bytes, "READ", BYTES, NULL, none, \
	"bytes read") \
X(writes, "WRITES", NUM, NULL, none, \
	"writes done") \
X(write_bytes, "WRITTEN", BYTES, NULL, none, \
	"bytes written") \
X(discards, "DISCARDS", NUM, NULL, none, \
	"discards done") \
X(flushes, "FLUSHES", NUM, NULL, none, \
	"flushes done") \
X(inflight, "INFLIGHT", NUM, NULL, none, \
	"requests under way")

/* a session, /sys/class/ibtrs-client/NAME or ibtrs-server */
#define STATE_SESSION(X) \
X(name, "SESSION", TEXT, NULL, none, \
	"name") \
X(side, "SIDE", TEXT, NULL, none, \
	"client: ours to a server, server: a client's to us") \
X(state, "STATE", TEXT, NULL, none, \
	"up, degraded, down") \
X(path_states, "PATHS", TEXT, NULL, none, \
	"a letter for each path: U works, _ does not") \
X(nr_up, "UP", NUM, NULL, none, \
	"paths that work") \
X(nr_paths, "NPATHS", NUM, NULL, none, \
	"paths") \
X(nr_devices, "DEVICES", NUM, NULL, none, \
	"mapped devices") \
X(policy, "POLICY", TEXT, "mpath_policy", policy, \
	"which path takes a request") \
X(auth, "KEY", TEXT, "auth", auth, \
	"key that both sides have proved; empty: nothing was proved") \
X(max_reconnect_attempts, "MAXRECONNECT", NUM, "max_reconnect_attempts", max_reconnect_attempts, \
	"attempts until a path is given up, -1 = never") \
X(dest_port, "PORT", NUM, "dest_port", dest_port, \
	"port of the server") \
X(hb_interval_ms, "HBINTERVAL", NUM, "hb_interval_ms", hb_interval_ms, \
	"milliseconds between heartbeats") \
X(hb_misses, "HBMISSES", NUM, "hb_misses", hb_misses, \
	"heartbeats in a row that may stay unanswered") \
X(reconnect_delay_ms, "DELAY", NUM, "reconnect_delay_ms", reconnect_delay_ms, \
	"milliseconds before the first attempt to reconnect") \
X(reconnect_max_ms, "MAXDELAY", NUM, "reconnect_max_ms", reconnect_max_ms, \
	"longest of these delays while I/O is held") \
X(read_bytes, "READ", BYTES, NULL, none, \
	"bytes read") \
X(write_bytes, "WRITTEN", BYTES, NULL, none, \
	"bytes written") \
X(inflight, "INFLIGHT", NUM, NULL, none, \
	"requests under way") \
X(reconnects, "RECONNECTS", NUM, NULL, none, \
	"reconnects of its paths")

/* a path, paths/SRC@DST below its session */
#define STATE_PATH(X) \
X(session, "SESSION", TEXT, NULL, none, \
	"session") \
X(side, "SIDE", TEXT, NULL, none, \
	"client or server") \
X(name, "PATH", TEXT, NULL, none, \
	"source@destination") \
X(src_addr, "SOURCE", TEXT, "src_addr", none, \
	"source address") \
X(dst_addr, "DESTINATION", TEXT, "dst_addr", none, \
	"destination address") \
X(state, "STATE", TEXT, "state", none, \
	"connected, disconnected") \
X(state_detail, "DETAIL", TEXT, "state_detail", none, \
	"idle, connecting, up, breaking, waiting, closing, closed; marginal; and why") \
X(hca_name, "HCA", TEXT, "hca_name", none, \
	"RDMA device") \
X(hca_port, "PORT", NUM, "hca_port", none, \
	"port of the RDMA device") \
X(latency, "LATENCY", NS, "cur_latency", none, \
	"round trip of the last heartbeat") \
X(reads, "READS", NUM, NULL, none, \
	"reads done") \
X(read_bytes, "READ", BYTES, NULL, none, \
	"bytes read") \
X(writes, "WRITES", NUM, NULL, none, \
	"writes done") \
X(write_bytes, "WRITTEN", BYTES, NULL, none, \
	"bytes written") \
X(inflight, "INFLIGHT", NUM, NULL, none, \
	"requests under way") \
X(failovers, "FAILOVERS", NUM, NULL, none, \
	"requests that moved to another path") \
X(reconnects, "RECONNECTS", NUM, NULL, none, \
	"reconnects") \
X(reconnects_failed, "FAILED", NUM, NULL, none, \
	"failed reconnects")

/* an export of the server, ctl/devices/NAME */
#define STATE_EXPORT(X) \
X(name, "EXPORT", TEXT, NULL, none, \
	"name in sysfs: of the block device, or the file's path") \
X(kind, "KIND", TEXT, NULL, none, \
	"block or file") \
X(block_dev, "BLOCKDEV", TEXT, NULL, none, \
	"block device") \
X(size, "SIZE", BYTES, "size", none, \
	"size") \
X(nr_opens, "OPENS", NUM, NULL, none, \
	"sessions that have it open") \
X(identity, "IDENTITY", TEXT, "identity", none, \
	"which disk it is") \
X(copy, "COPY", TEXT, "copy", none, \
	"private pages for data in transfer") \
X(claimed, "CLAIMED", FLAG, "claimed", none, \
	"kept from this host's own use, for a client writes to it")

/* an open of it, sessions/NAME below the export */
#define STATE_OPEN(X) \
X(export, "EXPORT", TEXT, NULL, none, \
	"export") \
X(session, "SESSION", TEXT, NULL, none, \
	"session") \
X(mapping_path, "DEVICE", TEXT, "mapping_path", none, \
	"name that the client sent") \
X(access_mode, "ACCESS", TEXT, "access_mode", none, \
	"ro, rw, migration") \
X(read_only, "RO", FLAG, "read_only", none, \
	"read-only") \
X(device_id, "ID", NUM, "device_id", none, \
	"number on the wire") \
X(claimed, "CLAIMED", FLAG, NULL, none, \
	"keeps the disk from this host's own use")

#endif
