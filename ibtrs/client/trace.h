/* SPDX-License-Identifier: GPL-2.0-only */
/* Trace events of a session, for `trace-cmd record -e ibtrs_client`. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ibtrs_client

#if !defined(IBTRS_CLIENT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define IBTRS_CLIENT_TRACE_H

#include <linux/tracepoint.h>
#include "ibtrs/client/session.h"

TRACE_DEFINE_ENUM(IBTRS_PATH_IDLE);
TRACE_DEFINE_ENUM(IBTRS_PATH_CONNECTING);
TRACE_DEFINE_ENUM(IBTRS_PATH_UP);
TRACE_DEFINE_ENUM(IBTRS_PATH_BREAKING);
TRACE_DEFINE_ENUM(IBTRS_PATH_WAITING);
TRACE_DEFINE_ENUM(IBTRS_PATH_CLOSING);
TRACE_DEFINE_ENUM(IBTRS_PATH_CLOSED);
TRACE_DEFINE_ENUM(IBTRS_READ);
TRACE_DEFINE_ENUM(IBTRS_WRITE);

#define ibtrs_clt_trace_state(s)			\
	__print_symbolic(s,				\
		{ IBTRS_PATH_IDLE,	"idle" },	\
		{ IBTRS_PATH_CONNECTING, "connecting" },	\
		{ IBTRS_PATH_UP,	"up" },		\
		{ IBTRS_PATH_BREAKING,	"breaking" },	\
		{ IBTRS_PATH_WAITING,	"waiting" },	\
		{ IBTRS_PATH_CLOSING,	"closing" },	\
		{ IBTRS_PATH_CLOSED,	"closed" })

/* A path changes its state. The reason is the last one that was posted. Path work. */
TRACE_EVENT(ibtrs_clt_path_state,
	TP_PROTO(const struct ibtrs_clt_path *path, enum ibtrs_path_state old,
		 enum ibtrs_path_state new),
	TP_ARGS(path, old, new),
	TP_STRUCT__entry(
		__string(session, path->clt->name)
		__string(path, path->name)
		__field(int, old)
		__field(int, new)
		__field(int, err)
		__array(char, reason, IBTRS_CLT_REASON_LEN)
	),
	TP_fast_assign(
		cx_assign_str(session, path->clt->name);
		cx_assign_str(path, path->name);
		__entry->old = old;
		__entry->new = new;
		__entry->err = READ_ONCE(path->err);
		strscpy(__entry->reason, path->reason, IBTRS_CLT_REASON_LEN);
	),
	TP_printk("%s %s: %s -> %s (%d %s)", __get_str(session), __get_str(path),
		  ibtrs_clt_trace_state(__entry->old), ibtrs_clt_trace_state(__entry->new),
		  __entry->err, __entry->reason)
);

/* A request is posted on a path; len is bytes of data. Any context. */
TRACE_EVENT(ibtrs_clt_req,
	TP_PROTO(const struct ibtrs_clt_conn *conn, const struct ibtrs_clt_io *io),
	TP_ARGS(conn, io),
	TP_STRUCT__entry(
		__string(session, conn->path->clt->name)
		__string(path, conn->path->name)
		__field(u32, cid)
		__field(u32, slot)
		__field(u32, len)
		__field(u8, dir)
	),
	TP_fast_assign(
		cx_assign_str(session, conn->path->clt->name);
		cx_assign_str(path, conn->path->name);
		__entry->cid = conn->c.cid;
		__entry->slot = io->slot;
		__entry->len = io->len;
		__entry->dir = io->dir;
	),
	TP_printk("%s %s: slot %u %s %u on conn %u", __get_str(session), __get_str(path),
		  __entry->slot,
		  __print_symbolic(__entry->dir, { IBTRS_READ, "read" }, { IBTRS_WRITE, "write" }),
		  __entry->len, __entry->cid)
);

/* The server's answer to a request. @err: 0 or negative errno. CQ context. */
TRACE_EVENT(ibtrs_clt_answer,
	TP_PROTO(const struct ibtrs_clt_path *path, u32 slot, int err),
	TP_ARGS(path, slot, err),
	TP_STRUCT__entry(
		__string(session, path->clt->name)
		__string(path, path->name)
		__field(u32, slot)
		__field(int, err)
	),
	TP_fast_assign(
		cx_assign_str(session, path->clt->name);
		cx_assign_str(path, path->name);
		__entry->slot = slot;
		__entry->err = err;
	),
	TP_printk("%s %s: slot %u err %d", __get_str(session), __get_str(path), __entry->slot,
		  __entry->err)
);

/* A request was taken off a path that broke, and posted on another one or parked. Drain work. */
TRACE_EVENT(ibtrs_clt_failover,
	TP_PROTO(const struct ibtrs_clt_path *path, u32 slot, bool parked),
	TP_ARGS(path, slot, parked),
	TP_STRUCT__entry(
		__string(session, path->clt->name)
		__string(path, path->name)
		__field(u32, slot)
		__field(bool, parked)
	),
	TP_fast_assign(
		cx_assign_str(session, path->clt->name);
		cx_assign_str(path, path->name);
		__entry->slot = slot;
		__entry->parked = parked;
	),
	TP_printk("%s %s: slot %u %s", __get_str(session), __get_str(path), __entry->slot,
		  __entry->parked ? "parked" : "moved")
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ibtrs/client
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
