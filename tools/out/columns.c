// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sets of objects that can be printed, with the default columns of each. host/state_fields.h
 * defines all columns.
 */
#include "tools/out/table.h"

#define SET(name, type_, usual_) \
	const struct table_set table_##name = { .what = #name, .type = &state_type_##type_, \
						.usual = usual_ }

SET(devs, dev,
    "path,name,size,detail,access_mode,session,device_path,up,paths");
SET(sessions, session,
    "name,side,state,path_states,nr_devices,policy,read_bytes,write_bytes,reconnects");
SET(paths, path,
    "session,name,hca_name,hca_port,state,latency,read_bytes,write_bytes,inflight,reconnects");
SET(exports, export,
    "name,kind,size,nr_opens,claimed,copy");
SET(opens, open,
    "export,session,mapping_path,access_mode,claimed");
