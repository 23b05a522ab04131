/* SPDX-License-Identifier: GPL-2.0-only */
/* Trace events of the server, for `trace-cmd record -e ibtrs_server`. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ibtrs_server

#if !defined(IBTRS_SERVER_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define IBTRS_SERVER_TRACE_H

#include <linux/tracepoint.h>
#include "ibtrs/server/op.h"

TRACE_DEFINE_ENUM(IBTRS_SRV_PATH_CONNECTING);
TRACE_DEFINE_ENUM(IBTRS_SRV_PATH_CONNECTED);
TRACE_DEFINE_ENUM(IBTRS_SRV_PATH_CLOSING);
TRACE_DEFINE_ENUM(IBTRS_SRV_PATH_LINGERING);
TRACE_DEFINE_ENUM(IBTRS_SRV_PATH_CLOSED);

#define ibtrs_srv_trace_state(s)				\
	__print_symbolic(s,					\
		{ IBTRS_SRV_PATH_CONNECTING,	"connecting" },	\
		{ IBTRS_SRV_PATH_CONNECTED,	"connected" },	\
		{ IBTRS_SRV_PATH_CLOSING,	"closing" },	\
		{ IBTRS_SRV_PATH_LINGERING,	"lingering" },	\
		{ IBTRS_SRV_PATH_CLOSED,	"closed" })

/* A path changes its state. Any context. */
TRACE_EVENT(ibtrs_srv_path_state,
	TP_PROTO(const struct ibtrs_srv_path *path, int old, int new),
	TP_ARGS(path, old, new),
	TP_STRUCT__entry(
		__string(path, path->name)
		__field(int, old)
		__field(int, new)
	),
	TP_fast_assign(
		cx_assign_str(path, path->name);
		__entry->old = old;
		__entry->new = new;
	),
	TP_printk("%s: %s -> %s", __get_str(path),
		  ibtrs_srv_trace_state(__entry->old), ibtrs_srv_trace_state(__entry->new))
);

/* A request is handed to the user; len is bytes of data. Completion context or a work. */
TRACE_EVENT(ibtrs_srv_request,
	TP_PROTO(const struct ibtrs_srv_opx *x),
	TP_ARGS(x),
	TP_STRUCT__entry(
		__string(session, x->path->session->name)
		__string(path, x->path->name)
		__field(u32, slot)
		__field(u32, len)
		__field(u64, token)
		__field(u16, cid)
		__field(bool, read)
	),
	TP_fast_assign(
		cx_assign_str(session, x->path->session->name);
		cx_assign_str(path, x->path->name);
		__entry->slot = x->slot;
		__entry->len = x->op.data_len;
		__entry->token = x->token;
		__entry->cid = x->conn->c.cid;
		__entry->read = x->op.dir == IBTRS_READ;
	),
	TP_printk("%s %s: cid %u slot %u token %llu %s %u", __get_str(session), __get_str(path),
		  __entry->cid, __entry->slot, __entry->token, __entry->read ? "read" : "write",
		  __entry->len)
);

/* A reply is posted. Any context. */
TRACE_EVENT(ibtrs_srv_reply,
	TP_PROTO(const struct ibtrs_srv_opx *x),
	TP_ARGS(x),
	TP_STRUCT__entry(
		__string(session, x->path->session->name)
		__string(path, x->path->name)
		__field(u32, slot)
		__field(int, err)
		__field(bool, inval)
	),
	TP_fast_assign(
		cx_assign_str(session, x->path->session->name);
		cx_assign_str(path, x->path->name);
		__entry->slot = x->slot;
		__entry->err = x->err;
		__entry->inval = x->need_inval;
	),
	TP_printk("%s %s: slot %u err %d%s", __get_str(session), __get_str(path), __entry->slot,
		  __entry->err, __entry->inval ? " inval" : "")
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ibtrs/server
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
