# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# place.sh: functions of run.sh about where a tree is built, and with which flags: it works, or one
# line says why not.
# shellcheck disable=SC2154 # $top and $logs are run.sh's

place() {	# directories that make takes apart: one line says so, whichever Makefile is called
	local w=$top/$logs/place c d t said
	one() {	# WORDS MAKE-ARGUMENTS..
		! said=$(make --no-print-directory "${@:2}" 2>&1) || {
			echo "make ${*:2} did not fail: $said"
			return 1
		}
		[ "$(wc -l <<< "$said")" = 1 ] && [[ $said == *"$1"* ]] || {
			echo "make ${*:2}: $said"
			return 1
		}
	}
	rm -rf "$w"
	for c in 'a b' ' a' a:b a,b 'a#b' 'a$b' "a'b" a%b a=b =ab 'a!b' a{b a}b 'a[b' a]b \
		-a+b~c@d^ä.e_1; do
		d=$w/$c
		mkdir -p "$d/tests"
		tar -cf - Makefile compat/{place,user}.mk tools/Makefile \
			tests/unit/Makefile tests/fuzz/Makefile ibtrs/include/ibtrs/version.h |
			tar -C "$d" -xf - || return 1
		if [[ $c = -* ]]; then
			ln -s "$d" "$w/l i n k"		# what counts is where it leads
			make --no-print-directory -C "$w/l i n k" -n modules KDIR=/k || return 1
			one '"/k b"' -C "$d" modules KDIR="/k b" || return 1
			one '"/d b"' -C "$d" install DESTDIR="/d b" || return 1
			one '"/d b"' -C "$d/tools" install DESTDIR="/d b" || return 1
			continue
		fi
		t=${c//[a-z]/}
		for t in "cannot be built in \"$d\"" "directory ${t/ /a blank} means"; do
			one "$t" -C "$d" modules || return 1
			one "$t" -C "$d" deb || return 1
			one "$t" -C "$d" dkms-install || return 1
		done
		for t in tools tests/unit tests/fuzz; do
			one "cannot be built in \"$d/$t\"" -C "$d/$t" || return 1
		done
		make --no-print-directory -C "$d" help | grep -q dkms-install || return 1
	done
	rm -rf "$w"
}
place_headers() {
	local kdir
	kdir=$(make -s --no-print-directory help 2>/dev/null | sed -n 's/^kernel headers: //p')
	[ ! -e "$kdir/Module.symvers" ] || { echo "$kdir"; return; }
	echo "no kernel headers here" >&2
	return 1
}

# flags of whoever packages come to the command's own, and take nothing from them
place_tools() {
	local o=$top/$logs/place-tools flag
	have pkg-config || return
	for flag in CPPFLAGS=-DX CFLAGS=-O0 LDFLAGS=-Wl,-O1; do
		rm -rf "$o"
		make --no-print-directory -C tools O="$o" V=1 "$flag" "$o/ibnbd-udev" \
			> "$o.log" || return 1
		grep -q -e " ${flag#*=} " "$o.log" || {
			echo "$flag does not come to it"
			return 1
		}
	done
	rm -rf "$o"
}

# KCFLAGS reach the modules, and change no answer of the probes; a wrong one is named in one line
place_flags() {
	local d=$top/$logs/place-flags kdir said flags
	kdir=$(place_headers) || return 77
	rm -rf "$d"
	make --no-print-directory dkms-source DESTDIR="$d" PREFIX= || return 1
	mv "$d"/src/ibnbd-* "$d/tree" || return 1
	sed -i 's/^obj-m += .*/obj-m :=/' "$d/tree/Kbuild"
	probe() {
		rm -f "$d"/tree/compat/config.h*
		said=$(make --no-print-directory -C "$kdir" M="$d/tree" "$@" modules 2>&1)
	}
	probe && mv "$d/tree/compat/config.h" "$d/want" || { echo "$said"; return 1; }
	# some at a time: none takes back what another one does
	for flags in "-w -H -save-temps" "--no-warnings -save-temps=obj" \
		"--pedantic-errors --extra-warnings --warn-error=unused-variable --save-temps \
		-Wfatal-errors"; do
		probe KCFLAGS="$flags" && cmp "$d/want" "$d/tree/compat/config.h" || {
			echo "KCFLAGS=$flags: $said"
			return 1
		}
	done
	for flags in "-include /nonexistent.h" -fnonsense -std=nonsense; do
		! probe KCFLAGS="$flags" || { echo "KCFLAGS=$flags is no mistake"; return 1; }
		said=$(grep -E 'compat:|error:' <<< "$said" | grep -v '^make')
		[ "$(wc -l <<< "$said")" = 1 ] && [[ $said == *"${flags#* }"*" of KCFLAGS"* ]] || {
			echo "KCFLAGS=$flags: $said"
			return 1
		}
	done
	# a compiler that is not there, or answers nothing: make's "Error 1" is not all that is said
	for flags in CC=nosuch-12 CC="nosuch-12 gcc" KCFLAGS=-M KCFLAGS=-E \
		"KCFLAGS=-wrapper echo"; do
		! probe "$flags" || { echo "$flags is no mistake"; return 1; }
		[ "$(grep -cE '^compat: cannot probe .*: (.*nosuch-12.*not found|.*KCFLAGS)' \
			<<< "$said")" = 1 ] || { echo "$flags: $said"; return 1; }
	done
	rm -rf "$d"
}
