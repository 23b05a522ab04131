/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ibnbd_server

#if !defined(IBNBD_SERVER_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define IBNBD_SERVER_TRACE_H

#include <linux/tracepoint.h>
#include "ibnbd/proto/msg_io.h"

#define show_ibnbd_srv_op(op) __print_symbolic(op,	\
	{ IBNBD_OP_READ,		"read" },	\
	{ IBNBD_OP_WRITE,		"write" },	\
	{ IBNBD_OP_FLUSH,		"flush" },	\
	{ IBNBD_OP_DISCARD,		"discard" },	\
	{ IBNBD_OP_SECURE_ERASE,	"secure-erase" }, \
	{ IBNBD_OP_WRITE_ZEROES,	"write-zeroes" })

/* @key is the same at the start and at the end of an I/O, and another one for other I/O. */
TRACE_EVENT(ibnbd_srv_io_start,
	TP_PROTO(const void *key, const struct ibnbd_io *m),
	TP_ARGS(key, m),
	TP_STRUCT__entry(
		__field(const void *, key)
		__field(u64, sector)
		__field(u32, id)
		__field(u32, bytes)
		__field(u32, flags)
		__field(u8, op)
	),
	TP_fast_assign(
		__entry->key = key;
		__entry->sector = m->sector;
		__entry->id = m->device_id;
		__entry->bytes = m->bytes;
		__entry->flags = m->flags;
		__entry->op = m->op;
	),
	TP_printk("io=%p device=%u %s sector=%llu bytes=%u flags=0x%x", __entry->key, __entry->id,
		  show_ibnbd_srv_op(__entry->op), __entry->sector, __entry->bytes, __entry->flags)
);

TRACE_EVENT(ibnbd_srv_io_end,
	TP_PROTO(const void *key, int err),
	TP_ARGS(key, err),
	TP_STRUCT__entry(
		__field(const void *, key)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->key = key;
		__entry->err = err;
	),
	TP_printk("io=%p err=%d", __entry->key, __entry->err)
);

TRACE_EVENT(ibnbd_srv_open,
	TP_PROTO(const char *session, const char *name, u32 id, int err),
	TP_ARGS(session, name, id, err),
	TP_STRUCT__entry(
		__string(session, session)
		__string(name, name)
		__field(u32, id)
		__field(int, err)
	),
	TP_fast_assign(
		cx_assign_str(session, session);
		cx_assign_str(name, name);
		__entry->id = id;
		__entry->err = err;
	),
	TP_printk("session=%s name=%s device=%u err=%d", __get_str(session), __get_str(name),
		  __entry->id, __entry->err)
);

TRACE_EVENT(ibnbd_srv_close,
	TP_PROTO(const char *session, const char *name, u32 id),
	TP_ARGS(session, name, id),
	TP_STRUCT__entry(
		__string(session, session)
		__string(name, name)
		__field(u32, id)
	),
	TP_fast_assign(
		cx_assign_str(session, session);
		cx_assign_str(name, name);
		__entry->id = id;
	),
	TP_printk("session=%s name=%s device=%u", __get_str(session), __get_str(name), __entry->id)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
