/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trace events of mapped devices, for `trace-cmd record -e ibnbd_client`. Successful requests are
 * in the block layer's own events.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ibnbd_client

#if !defined(IBNBD_CLIENT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define IBNBD_CLIENT_TRACE_H

#include <linux/tracepoint.h>
#include "ibnbd/client/dev.h"

/* A device changes its state. The names are those of logic/dev_sm. */
TRACE_EVENT(ibnbd_clt_dev_state,
	TP_PROTO(const struct ibnbd_clt_dev *dev, enum ibnbd_dev_event event,
		 const struct ibnbd_dev_step *step),
	TP_ARGS(dev, event, step),
	TP_STRUCT__entry(
		__field(int, index)
		__string(session, dev->map.sessname)
		__string(device, dev->map.device_path)
		__string(event, ibnbd_dev_sm_event_name(event))
		__string(old, ibnbd_dev_sm_state_name(dev->state))
		__string(new, ibnbd_dev_sm_state_name(step->state))
		__field(unsigned int, actions)
	),
	TP_fast_assign(
		__entry->index = dev->index;
		cx_assign_str(session, dev->map.sessname);
		cx_assign_str(device, dev->map.device_path);
		cx_assign_str(event, ibnbd_dev_sm_event_name(event));
		cx_assign_str(old, ibnbd_dev_sm_state_name(dev->state));
		cx_assign_str(new, ibnbd_dev_sm_state_name(step->state));
		__entry->actions = step->actions;
	),
	TP_printk("ibnbd%d %s@%s: %s -> %s (%s, actions %#x)", __entry->index, __get_str(device),
		  __get_str(session), __get_str(old), __get_str(new), __get_str(event),
		  __entry->actions)
);

/* The answer to an OPEN: err 0 or negative errno, reason in words. */
TRACE_EVENT(ibnbd_clt_dev_open,
	TP_PROTO(const struct ibnbd_clt_dev *dev, u32 gen, int err, const char *why),
	TP_ARGS(dev, gen, err, why),
	TP_STRUCT__entry(
		__field(int, index)
		__string(session, dev->map.sessname)
		__string(device, dev->map.device_path)
		__string(why, why ? why : "")
		__field(u32, gen)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->index = dev->index;
		cx_assign_str(session, dev->map.sessname);
		cx_assign_str(device, dev->map.device_path);
		cx_assign_str(why, why ? why : "");
		__entry->gen = gen;
		__entry->err = err;
	),
	TP_printk("ibnbd%d %s@%s: link %u err %d %s", __entry->index, __get_str(device),
		  __get_str(session), __entry->gen, __entry->err, __get_str(why))
);

/* The session's link as ibtrs tells it: ev is enum ibtrs_clt_link_ev. */
TRACE_EVENT(ibnbd_clt_session_link,
	TP_PROTO(const struct ibnbd_clt_session *s, int ev),
	TP_ARGS(s, ev),
	TP_STRUCT__entry(
		__string(session, s->name)
		__field(u32, gen)
		__field(int, ev)
	),
	TP_fast_assign(
		cx_assign_str(session, s->name);
		__entry->gen = s->gen;
		__entry->ev = ev;
	),
	TP_printk("%s: link %u %s", __get_str(session), __entry->gen,
		  __print_symbolic(__entry->ev, { IBTRS_CLT_LINK_DOWN, "down" },
				   { IBTRS_CLT_LINK_UP, "up" },
				   { IBTRS_CLT_LINK_REPLAY, "replay" }))
);

/* A request ends, or could not begin, with an error. Any context. */
TRACE_EVENT(ibnbd_clt_error,
	TP_PROTO(const struct ibnbd_clt_dev *dev, const struct ibnbd_clt_op *op, int err),
	TP_ARGS(dev, op, err),
	TP_STRUCT__entry(
		__field(int, index)
		__field(u32, slot)
		__field(u32, rw)
		__field(u64, sector)
		__field(u32, bytes)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->index = dev->index;
		__entry->slot = op->io.slot;
		__entry->rw = le32_to_cpu(op->hdr->rw);
		__entry->sector = le64_to_cpu(op->hdr->sector);
		__entry->bytes = le32_to_cpu(op->hdr->bytes);
		__entry->err = err;
	),
	TP_printk("ibnbd%d: slot %u rw %#x sector %llu bytes %u err %d", __entry->index,
		  __entry->slot, __entry->rw, __entry->sector, __entry->bytes, __entry->err)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ibnbd/client
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
