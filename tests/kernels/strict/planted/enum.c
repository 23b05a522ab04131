// SPDX-License-Identifier: GPL-2.0-only
/* says: implicit conversion from */
enum rdma_cm_event_type planted_enum(enum ib_qp_state state);
enum rdma_cm_event_type planted_enum(enum ib_qp_state state)
{
	return state;
}
