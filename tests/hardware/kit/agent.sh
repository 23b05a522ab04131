# SPDX-License-Identifier: GPL-2.0-only
# What run.sh starts on a host under test, over ssh: it runs scripts for it, keeps a journal of what
# they change, and undoes that when it is told to, or when nobody is there any more.
#
#	stdin	RUN id script		base64; DONE id status output (base64) when it has ended
#		KILL id			and all it started
#		PING			the other end is alive
#	LEASE	seconds without a line after which it is not
#
# Scripts say `undo COMMAND..` before they change something; each such command is a line of the
# journal. The journal is in /run: a host that boots has forgotten both it and what it is about.
# What cannot be undone is said and stays in $DIR/left; all else is undone, but for modules, which
# it may still use.
# End of file (run.sh or its ssh has ended), a lease that is over and SIGTERM are the same: jobs are
# killed, the journal is undone.

DIR=/run/ibnbd-hardware
JOURNAL=$DIR/journal

fail() { echo "$*" >&2; exit 1; }

# wait_for SECONDS COMMAND..
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# the agent that has the journal is alive
owner_alive() { [ -e $DIR/owner ] && [ -e "/proc/$(cat $DIR/owner)" ]; }

# begin: from here on things may be changed
begin() {
	if [ -e $JOURNAL ]; then
		! owner_alive || fail "another run is busy here, process $(cat $DIR/owner)"
		fail "an earlier run has left changes here, $JOURNAL: run.sh --restore undoes them"
	fi
	mkdir -p $DIR
	chmod 700 $DIR
	rm -f $DIR/left
	echo "$AGENT" > $DIR/owner
	printf '%s\n' "$KIT" > $DIR/kit.sh
	: > $JOURNAL
}

# undo COMMAND..: what is about to be done will be undone with it, the last one first
undo() {
	[ -e $JOURNAL ] || fail "nothing may be changed before begin"
	printf '%q ' "$@" | sed 's/ $/\n/' >> $JOURNAL
}

mark() { wc -l < $JOURNAL; }

# restore [MARK]: undo what was done since the journal had that many lines; without, all of it
restore() {
	local line rc=0

	[ -e $JOURNAL ] || return 0
	while [ "$(mark)" -gt "${1:-0}" ]; do	# 0 without a mark
		line=$(tail -n 1 $JOURNAL)
		# what is still there may use the module
		if { [ $rc != 0 ] && [[ $line = "unload "* ]]; } || ! timeout -k 5 240 bash -c "
			set -u; DIR=$DIR JOURNAL=$JOURNAL; . $DIR/kit.sh; $line" 2>&1; then
			echo "cannot be undone: $line" | tee -a $DIR/left >&2
			rc=1
		fi
		sed -i '$d' $JOURNAL
	done
	[ $# = 0 ] || return $rc
	rm -rf $JOURNAL $DIR/{owner,kit.sh,exports} $DIR/link.*
	rmdir $DIR 2> /dev/null || true
	return $rc
}

declare -A JOBS=()

job() {
	local id=$1 out rc

	out=$(mktemp)
	(set -e; eval "$(base64 -d <<< "$2")") < /dev/null > "$out" 2>&1
	rc=$?
	{
		flock 9
		echo "DONE $id $rc $(base64 -w 0 < "$out")"
	} 9<> "$LOCK"
	rm -f "$out"
}

finish() {
	trap '' TERM HUP PIPE INT
	local id
	for id in "${!JOBS[@]}"; do
		kill -TERM -- "-${JOBS[$id]}" 2> /dev/null
	done
	sleep 1
	for id in "${!JOBS[@]}"; do
		kill -KILL -- "-${JOBS[$id]}" 2> /dev/null
	done
	rm -f "$LOCK"
	[ "$(cat $DIR/owner 2> /dev/null)" != "$AGENT" ] || restore
	exit 0
}

agent() {
	local verb id script old

	LOCK=$(mktemp) AGENT=$BASHPID
	trap finish TERM
	trap '' HUP PIPE INT
	set -m		# a process group for each job
	echo "READY $(cat /proc/sys/kernel/random/boot_id) $(id -u)"
	while read -r -t "$LEASE" verb id script; do
		case $verb in
		RUN)
			for old in "${!JOBS[@]}"; do	# the number may be another's by now
				kill -0 -- "-${JOBS[$old]}" 2> /dev/null || unset "JOBS[$old]"
			done
			job "$id" "$script" &
			JOBS[$id]=$! ;;
		KILL)
			[ -z "${JOBS[$id]:-}" ] || kill -KILL -- "-${JOBS[$id]}" 2> /dev/null ;;
		esac
	done
	finish > /dev/null 2>&1
}
