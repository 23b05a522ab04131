/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of commands: the source of the command line, the help, the manual and the completion.
 * Rows are in the order in which help shows them. A file that needs the rows defines COMMAND() and
 * includes this file.
 *
 * COMMAND(name, words, min, max, options, flags, what, run, help, more):
 *	name	one or two words
 *	words	synopsis of what follows; min to max of them, or ANY number
 *	options	O(x) for each of its own, with x of CMD_OPTIONS; CMD_TABLE: those of a table
 *	flags	CMD_MAPOPTS: it takes the mapping grammar; CMD_INSTEAD: --all, --session or
 *		--missing may stand in place of the words
 *	what	CMD_WORDS_x: of what kind the words are, for the completion
 *	run	int run(struct cmd_args *a), whose result is the exit status
 *	help	one line
 *	more	a paragraph, or NULL
 */
COMMAND("map", "DEVICE SESSION [PATH]...", 0, ANY,
	O(json) | O(idempotent) | O(save) | O(save_only) | O(no_reload) | O(no_modprobe) |
		  O(file),
	CMD_MAPOPTS, CMD_WORDS_NONE, cmd_map_run, "map a device of a server",
	"DEVICE is the name of the export on the server, SESSION a name for the connection, PATH an "
	"address of the server, [SOURCE,]DESTINATION. A session that exists needs no PATH. "
	"\"-\" as SESSION makes one of this host's full name, a part of its machine id, and the "
	"server's address, or stands for the session that was made so before the host got "
	"another name. A single word is the name of a line in maps.conf. If that file has "
	"uuid= or size= for the mapping, a disk that does not match is unmapped again. Prints "
	"the name of the device.")
COMMAND("unmap", "DEVICE...", 1, ANY,
	O(force) | O(all) | O(idempotent) | O(forget) | O(no_reload) | O(timeout) | O(file),
	CMD_INSTEAD, CMD_WORDS_DEVICE, cmd_unmap_run, "unmap a device",
	"Waits until the device is gone, for at most 30 seconds. Refuses a device that is in use "
	"and names its users. --all skips the device of the root file system and of swap.")
COMMAND("remap", "DEVICE...", 1, ANY, O(all) | O(session) | O(force) | O(file), CMD_INSTEAD,
	CMD_WORDS_DEVICE, cmd_remap_run, "open a closed device again on the server",
	"Besides unmapping, the only way to use a fenced device again. --session: all closed "
	"devices of a session. --force: unmap it and map it again with the same options, over "
	"the paths of its session. Options that an older driver does not show (port, heartbeat, "
	"delays, write_*) come from its line in maps.conf, or are the defaults.")
COMMAND("resize", "DEVICE SIZE", 2, 2, O(force), 0, CMD_WORDS_DEVICE, cmd_resize_run,
	"change the size of a device here",
	"SIZE in bytes, or with K, M, G, T, P, E (1024), or with s for sectors of 512 bytes. Making it smaller needs --force.")
COMMAND("list", "[DEVICE]...", 0, ANY, CMD_TABLE | O(tree) | O(session), 0, CMD_WORDS_DEVICE,
	cmd_list_run, "list mapped devices", NULL)
COMMAND("show", "NAME...", 1, ANY, O(json) | O(bytes), 0, CMD_WORDS_ANY, cmd_show_run,
	"show a device, session, path or export in full", NULL)
COMMAND("stat", "[SESSION]...", 0, ANY,
	O(json) | O(bytes) | O(interval) | O(count) | O(noheadings), 0, CMD_WORDS_SESSION,
	cmd_stat_run, "traffic of devices and paths",
	"Without -i: sums since the beginning. With -i: rates for each interval.")
COMMAND("path list", "[SESSION]...", 0, ANY, CMD_TABLE, 0, CMD_WORDS_SESSION, cmd_path_list_run,
	"list paths, of both sides", NULL)
COMMAND("path add", "SESSION PATH...", 2, ANY, O(idempotent), 0, CMD_WORDS_SESSION,
	cmd_path_add_run, "add a path to a session", "Returns when it is connected.")
COMMAND("path remove", "SESSION PATH...", 1, ANY, O(force) | O(idempotent), 0, CMD_WORDS_PATH,
	cmd_path_order_run, "take a path out of a session",
	"PATH: source@destination, one of both addresses, or RDMA-DEVICE:PORT. The last path that works needs --force.")
COMMAND("path disconnect", "SESSION PATH...", 1, ANY, O(force) | O(idempotent), 0, CMD_WORDS_PATH,
	cmd_path_order_run, "close a path and leave it closed",
	"The last path that works needs --force.")
COMMAND("path reconnect", "SESSION PATH...", 1, ANY, O(all) | O(idempotent), CMD_INSTEAD,
	CMD_WORDS_PATH, cmd_path_order_run, "connect a path now",
	"--all: each path of the session, or of all sessions, that is not connected.")
COMMAND("path policy", "SESSION [POLICY]", 1, 2, 0, 0, CMD_WORDS_SESSION, cmd_path_policy_run,
	"show or set how a path is chosen for a request",
	"POLICY: round-robin, min-inflight or min-latency.")
COMMAND("session list", "[SESSION]...", 0, ANY, CMD_TABLE, 0, CMD_WORDS_SESSION,
	cmd_session_list_run, "list sessions, of both sides", NULL)
COMMAND("session reconnect", "SESSION...", 1, ANY, O(all), CMD_INSTEAD, CMD_WORDS_SESSION,
	cmd_session_reconnect_run, "connect all paths that are down", NULL)
COMMAND("server list", "", 0, 0, CMD_TABLE, 0, CMD_WORDS_NONE, cmd_server_list_run,
	"list the mappings of this host's exports", NULL)
COMMAND("server exports", "", 0, 0, CMD_TABLE, 0, CMD_WORDS_NONE, cmd_server_exports_run,
	"list exports, open or not, and the rules for them",
	"Shows below each name the rules of policy.conf that may apply to it, as the driver has them (for root); the first that matches decides.")
COMMAND("server close", "EXPORT [SESSION]", 1, 2, O(force) | O(all) | O(idempotent), 0,
	CMD_WORDS_EXPORT, cmd_server_close_run, "close a mapping of a client",
	"Its I/O fails from now on. --all: of every session. Requires --force, since the client may be using it.")
COMMAND("server disconnect", "SESSION [PATH]...", 1, ANY, 0, 0, CMD_WORDS_NONE,
	cmd_server_disconnect_run, "close paths of a client", "The client will come back.")
COMMAND("server check", "", 0, 0, O(file) | O(policy_file), 0, CMD_WORDS_NONE,
	cmd_server_check_run, "look for mistakes in server.conf and policy.conf", NULL)
COMMAND("server start", "", 0, 0, O(file) | O(policy_file) | O(no_modprobe) | O(timeout), 0,
	CMD_WORDS_NONE,
	cmd_server_start_run, "export as server.conf and policy.conf say",
	"Run it again to apply changes: mappings that policy.conf no longer allows are closed. --wait: if nothing is exported so far, links of the search path that lead nowhere yet get that time first; not at all by default.")
COMMAND("server stop", "", 0, 0, O(force), 0, CMD_WORDS_NONE, cmd_server_stop_run,
	"stop exporting", "Refuses while something is mapped, unless --force.")
COMMAND("group create", "NAME", 1, 1, 0, 0, CMD_WORDS_NONE, cmd_group_create_run,
	"make the state_dir of a group of exports",
	"Once, on the server that has its file system mounted. A group is /etc/ibnbd/groups/NAME.conf: what server.conf says, and state_dir, on storage that goes with the disks to the other server.")
COMMAND("group start", "NAME", 1, 1, O(force) | O(policy_file) | O(no_modprobe) | O(timeout), 0,
	CMD_WORDS_NONE, cmd_group_start_run, "serve a group of exports on this host",
	"Refuses if a disk is a DRBD Secondary, is in use on this host or is missing, if this host exports something else, and if another host has not stopped the group. "
	"--force: that host is off or fenced. --wait: disks that are missing get that time first. Run it again to apply changes of the file.")
COMMAND("group stop", "NAME", 1, 1, O(timeout), 0, CMD_WORDS_NONE, cmd_group_stop_run,
	"stop serving a group, so that another host can",
	"Succeeds if every write has ended, the disks are flushed, the records are written and the driver is unloaded, or if the group was not served here. --wait: for the disks, 30 seconds by default. Clients wait for as long as their hold= says.")
COMMAND("group status", "[NAME]", 0, 1, O(timeout), 0, CMD_WORDS_NONE, cmd_group_status_run,
	"is a group served on this host, and does it answer?",
	"Exits with 0: it is active, 3: it is inactive, 5: it is closed, and requests to its disks have not ended, 1: a disk or state_dir reports an error or is gone, 7: one has not answered within --wait, 10 seconds by default.")
COMMAND("key generate", "NAME", 1, 1, O(next) | O(idempotent), 0, CMD_WORDS_NONE,
	cmd_key_generate_run, "make a key that two hosts share",
	"Writes /etc/ibnbd/keys/NAME, which only root can read; copy it to the other host by a way that you trust. "
	"--next: NAME.next, to follow it: both are valid until NAME.next is renamed to NAME.")
COMMAND("key list", "", 0, 0, O(noheadings) | O(json), 0, CMD_WORDS_NONE, cmd_key_list_run,
	"list keys, and which of them the kernel has", NULL)
COMMAND("key load", "[NAME]...", 0, ANY, O(no_modprobe), 0, CMD_WORDS_NONE, cmd_key_load_run,
	"load keys into the kernel",
	"Without NAME all of /etc/ibnbd/keys, and a key that has no file there any more is dropped; ibnbd-keys.service does it at boot. "
	"Keys cannot be read back. Existing connections are not affected; the next one uses the keys that are loaded then.")
COMMAND("key remove", "NAME...", 1, ANY, O(next) | O(idempotent), 0, CMD_WORDS_NONE,
	cmd_key_remove_run, "take a key out of the kernel and delete its file",
	"Connections that are up stay, but cannot come back. --next: only the one that is to follow.")
COMMAND("maps check", "", 0, 0, O(file) | O(json), 0, CMD_WORDS_NONE, cmd_maps_check_run,
	"look for mistakes in maps.conf", NULL)
COMMAND("maps show", "[NAME]...", 0, ANY, O(file) | O(json) | O(as_commands), 0, CMD_WORDS_MAP,
	cmd_maps_show_run, "show maps.conf with defaults filled in", NULL)
COMMAND("maps apply", "", 0, 0, O(file) | O(prune) | O(force) | O(no_modprobe), 0, CMD_WORDS_NONE,
	cmd_maps_apply_run, "apply maps.conf",
	"Maps what is missing, adds paths, changes what can be changed in place. Unmaps nothing unless --prune is given.")
COMMAND("maps save", "[NAME|DEVICE]...", 1, ANY, O(file) | O(all) | O(no_reload), CMD_INSTEAD,
	CMD_WORDS_DEVICE, cmd_maps_save_run, "write what is mapped to maps.conf.d",
	"Each mapping has a file there, NAME.conf. If a file that a person wrote has its line, the error names that line, which stays as it is.")
COMMAND("maps remove", "NAME...", 1, ANY, O(file) | O(no_reload) | O(idempotent), 0,
	CMD_WORDS_MAP, cmd_maps_remove_run, "remove saved mappings from maps.conf.d",
	"If a file that a person wrote has the line, the error names it, and it stays.")
COMMAND("maps tidy", "", 0, 0, O(no_reload), 0, CMD_WORDS_NONE, cmd_maps_tidy_run,
	"split 50-saved.conf into one file per mapping",
	"Earlier versions saved all mappings in that file. It is kept as 50-saved.conf.old, which is not read. The next --save does the same.")
COMMAND("maps start", "NAME...", 1, ANY, O(file) | O(missing) | O(timeout) | O(no_modprobe),
	CMD_INSTEAD, CMD_WORDS_MAP, cmd_maps_start_run,
	"map lines of maps.conf, retrying until it works", NULL)
COMMAND("maps stop", "NAME...", 1, ANY, O(file) | O(timeout) | O(force), 0, CMD_WORDS_MAP,
	cmd_maps_stop_run, "unmap lines of maps.conf", NULL)
COMMAND("maps release", "", 0, 0, O(remember), 0, CMD_WORDS_NONE, cmd_maps_release_run,
	"shorten hold= of every device, for a shutdown or a suspend",
	"To 10 seconds, or to 5 if no path works; ibnbd-shutdown.service does it before the "
	"file systems are unmounted, ibnbd-suspend.service before the machine sleeps. The "
	"device of the root file system and of swap is left alone.")
COMMAND("maps restore", "", 0, 0, 0, 0, CMD_WORDS_NONE, cmd_maps_restore_run,
	"undo maps release --remember",
	"Devices that were changed or unmapped since are left alone.")
COMMAND("mirror create", "NAME LEG LEG [LEG]", 3, 4,
	O(assume_clean) | O(force) | O(timeout) | O(file) | O(no_reload) | O(no_modprobe), 0,
	CMD_WORDS_MAP, cmd_mirror_create_run, "make a mirror of disks of two or three servers",
	"LEG is the name of a saved mapping, or, as one word, what ibnbd map takes: \"DEVICE SESSION PATH...\", which becomes the mapping NAME-a, NAME-b or NAME-c. "
	"Legs are saved with hold=-1 and group=NAME. Refuses legs on one server, of different sizes, with content, and of servers that do not tell what they lose, unless --force. "
	"--wait: how long a boot waits for a leg that is missing, 30 seconds by default. Prints the name of the array.")
COMMAND("mirror status", "[NAME]", 0, 1, O(json), 0, CMD_WORDS_MIRROR, cmd_mirror_status_run,
	"show mirrors with their legs", NULL)
COMMAND("mirror check", "NAME", 1, 1, O(json), 0, CMD_WORDS_MIRROR, cmd_mirror_check_run,
	"compare the legs of a mirror",
	"Exits with 0: they are equal, 1: they differ. A page that is written while it changes (swap, mmap) may count as a difference.")
COMMAND("mirror replace", "NAME LEG [NEW]", 2, 3, O(force), 0, CMD_WORDS_MIRROR,
	cmd_mirror_replace_run, "copy a leg whole from the others, or put a new disk in its place",
	"Everything on LEG is written over, also if it is another disk by now. NEW, as a leg of mirror create, takes its place; it is refused as there, unless --force. Needs another leg that is in sync and open.")
COMMAND("mirror stop", "NAME", 1, 1, 0, 0, CMD_WORDS_MIRROR, cmd_mirror_stop_run,
	"stop a mirror", "Its legs stay mapped.")
COMMAND("mirror assemble", "NAME", 1, 1, O(run) | O(force), 0, CMD_WORDS_MIRROR,
	cmd_mirror_assemble_run, "start a mirror",
	"From the legs that have everything, when all of them are there. --run: from those of them that are there. --run --force: from what is there, although it may be old.")
COMMAND("mirror watch", "", 0, 0, O(count), 0, CMD_WORDS_NONE, cmd_mirror_watch_run,
	"keep mirrors whole",
	"What ibnbd-mirror.service runs. Starts mirrors at boot, takes legs back, copies those whole that have lost something, and keeps the record of which legs have everything.")
COMMAND("monitor", "", 0, 0, O(json) | O(count) | O(timeout), 0, CMD_WORDS_NONE, cmd_monitor_run,
	"report events of devices and paths", NULL)
COMMAND("metrics", "", 0, 0, O(file), 0, CMD_WORDS_NONE, cmd_metrics_run,
	"metrics for Prometheus", NULL)
COMMAND("doctor", "", 0, 0, O(json) | O(file), 0, CMD_WORDS_NONE, cmd_doctor_run,
	"find problems and suggest remedies",
	"Exits with 0: all well, 1: warnings, 2: something does not work.")
COMMAND("dump", "", 0, 0, O(anonymize) | O(file) | O(json), 0, CMD_WORDS_NONE, cmd_dump_run,
	"print the whole state as JSON, for a bug report", NULL)
COMMAND("help", "[COMMAND]...", 0, ANY, 0, 0, CMD_WORDS_COMMAND, cmd_help_run,
	"show this list, or describe a command", NULL)
COMMAND("complete", "-- WORD...", 1, ANY, 0, CMD_HIDDEN, CMD_WORDS_NONE, cmd_complete_run,
	"what may stand in place of the last word of a command line", NULL)
COMMAND("synopsis", "[maps|server]", 0, 1, 0, CMD_HIDDEN, CMD_WORDS_NONE, cmd_synopsis_run,
	"the manual's list of commands and options", NULL)
