/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /etc/ibnbd/server.conf: what this host exports, as KEY = VALUE lines, a key for each parameter of
 * the module ibnbd-server. Without dev_search_path nothing is exported and no port is open.
 */
#ifndef TOOLS_SERVER_CONF_H
#define TOOLS_SERVER_CONF_H

#include "tools/conf/maps_conf.h"

#define SERVER_CONF	"/etc/ibnbd/server.conf"
#define SERVER_STATE	"/var/lib/ibnbd"
#define SERVER_WRITERS	SERVER_STATE "/writers"

/*
 * X(key, runtime, help): @runtime: can be changed while the module is loaded. Those before policy
 * are parameters of the module.
 */
#define SERVER_KEYS(X) \
	X(dev_search_path, true, \
	  "directory whose devices, files and links are exported; %SESSNAME% as its last part: one for each session") \
	X(allow, true, \
	  "who may come: addresses with a prefix length, session:PATTERN; empty = everybody who reaches the port") \
	X(auth, true, \
	  "must clients prove that they have a key (ibnbd key): off: none can, optional, required") \
	X(port_nr, false, "port to listen on") \
	X(copy, true, "private pages for data in transfer: auto, always, never") \
	X(io_mode, true, "what may be exported: auto, blockio, fileio") \
	X(file_block, true, "logical block size of exported files: 512, 1024, 2048 or 4096") \
	X(claim, true, \
	  "refuse to have a disk written to that this host uses itself, and keep the host from one that a client writes to: yes or no") \
	X(write_zeroes, true, \
	  "announce write-zeroes to clients that did not negotiate it: yes or no") \
	X(max_maps, true, "devices that one session may map") \
	X(writer_file, false, \
	  "file that keeps who wrote last to each disk; none: each disk has one client only") \
	X(policy, true, \
	  "may the server start without a rule in policy.conf? Without this key a file that is missing or empty is a mistake, and one with a comment alone is not; required: one without a rule is, too; optional: none of them is") \
	X(state_dir, false, \
	  "only in the file of a group (ibnbd group): directory with its records, which goes with its disks from one server to the other")

enum server_key_id {
#define SERVER_KEY_ENUM(key, ...) SERVER_##key,
	SERVER_KEYS(SERVER_KEY_ENUM)
#undef SERVER_KEY_ENUM
	SERVER_NR_KEYS,
	SERVER_NR_PARAMETERS = SERVER_policy
};

struct server_key {
	const char *key;
	bool runtime;
	const char *help;
};

extern const struct server_key server_keys[SERVER_NR_KEYS];

struct server_conf {
	struct maps *m;		/* the file, and its mistakes */
	char *value[SERVER_NR_KEYS];
	bool there;		/* the file exists, whether or not it can be used */
};

struct server_conf *server_conf_load(const char *file);
void server_conf_free(struct server_conf *c);
DEFINE_FREE(server_conf_free, struct server_conf *)

/*
 * Does a list of allow keep any host out? A client chooses the name of its session itself, and with
 * a prefix of 0 every address of its kind is on the list.
 */
bool server_allow_bars(const char *allow);

/*
 * Does the value @want let in, or allow, something that @now does not? A list of allow that does so
 * and also keeps out some whom the other lets in counts as one that keeps out.
 */
bool server_conf_loosens(enum server_key_id id, const char *now, const char *want);

#endif
