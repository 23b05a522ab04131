#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# run.sh [WORD]: what can be shown of the packages and the command without a virtual machine; only
# the steps whose name contains WORD. Packages are built, looked into and linted, and with TWICE=1,
# as make check-all has it, built once more (twice.sh); the gates of dkms.conf and the
# choice of the RDMA stack are tried with made-up kernels; the command is tried by tests/tools. Last
# line: N passed, N failed, N skipped. Logs: build/packages.
set -u
cd "$(dirname "$0")/../.." || exit 1
top=$PWD
only=${1:-}
logs=build/packages
passed=0 failed=0 skipped=0
mkdir -p $logs

step() {	# NAME COMMAND..: 77 skips
	local name=$1 log rc begin=$SECONDS
	shift
	[[ $name == *"$only"* ]] || return 0
	log=$logs/$(tr -cs 'a-z0-9\n' - <<< "$name").log
	( "$@" ) > "$log" 2>&1
	rc=$? begin=$((SECONDS - begin))
	case $rc in
	0)  [ $begin -lt 10 ] && begin= || begin=" ($begin s)"
	    echo "ok    $name$begin"
	    passed=$((passed + 1)) ;;
	77) echo "skip  $name: $(tail -n 1 "$log")"; skipped=$((skipped + 1)) ;;
	*)  echo "FAIL  $name ($log)"; tail -n 15 "$log"; failed=$((failed + 1)) ;;
	esac
}
have() {
	local t
	for t; do command -v "$t" > /dev/null || { echo "no $t on this machine"; return 77; }; done
}
expect() { [ "$1" = "$2" ] || { echo "${3:-}: got '$1', want '$2'"; return 1; }; }

# ---- the archive ----
# what git knows, however one gets there; where git does not answer: its words, and no archive
archive() {
	have git || return
	local w=$top/$logs/archive src=$top/$logs/archive/outer/src out said t
	dist() { rm -f "$out"; (cd "$1" && "${@:2}" tests/packages/dist.sh "$out") 2>&1; }
	refused() {	# WORDS DIRECTORY COMMAND..
		! said=$(dist "${@:2}") || { echo "made an archive in spite of: $1"; return 1; }
		[[ $said == "dist.sh: "*"$1"* ]] || { echo "got '$said', want '$1'"; return 1; }
		[ ! -e "$out" ] && [ ! -e "$out.tmp" ]
	}
	same() {
		dist "$@" || return 1
		cmp "$w/want.tar.gz" "$out" || { tar -tzf "$out" | head -n 20; return 1; }
	}
	rm -rf "$w"
	mkdir -p "$w/outer" "$w/bin"
	out=$w/want.tar.gz
	dist "$top" env || return 1
	tar -C "$w/outer" -xzf "$out" && mv "$w/outer"/ibnbd-* "$src" || return 1
	out=$w/out.tar.gz

	# what was unpacked, alone and below a checkout of something else
	touch "$src/ibtrs/core/x.o" "$src/compat/config.h"
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_CEILING_DIRECTORIES=$w
	same "$src" env || return 1
	for t in bash realpath dirname sed head mkdir rm cat grep find sort tar gzip mv; do
		ln -s "$(command -v $t)" "$w/bin/$t"
	done
	git -C "$w/outer" init -q
	same "$src" env || return 1
	refused "in the checkout $w/outer, and git" "$src" env PATH="$w/bin" || return 1
	refused "dubious ownership" "$src" env GIT_TEST_ASSUME_DIFFERENT_OWNER=1 || return 1

	# a checkout, with a file that does not belong to it
	git -C "$src" init -q
	refused "did not match any file" "$src" env || return 1
	git -C "$src" add -A && echo secret > "$src/my.key" || return 1
	same "$src" env || return 1
	ln -s "$src" "$w/link"
	same "$w/link" env || return 1
	mkdir -p "$w/other/tests/packages"
	for t in TAR_OPTIONS='--exclude=*.c' GZIP=--rsyncable CDPATH="$w/other"; do
		same "$src" env "$t" || { echo "$t"; return 1; }
	done
	same "$src" env GIT_DIR="$w/nowhere" GIT_INDEX_FILE="$w/none" || return 1
	refused "dubious ownership" "$src" env GIT_TEST_ASSUME_DIFFERENT_OWNER=1 || return 1
	refused "safe.directory" "$w/link" env GIT_TEST_ASSUME_DIFFERENT_OWNER=1 || return 1
	refused "install git" "$src" env PATH="$w/bin" || return 1

	# what was packed before stays where it is
	for t in deb rpm; do
		[ $t = deb ] && ! dpkg-checkbuilddeps debian/control 2> /dev/null && continue
		[ $t = rpm ] && ! command -v rpmbuild > /dev/null && continue
		mkdir -p "$w/$t"
		touch "$w/$t/ibnbd-old.$t"
		! said=$(cd "$w/link" &&
			GIT_TEST_ASSUME_DIFFERENT_OWNER=1 tests/packages/$t.sh "$w/$t" 2>&1) || {
			echo "$t.sh packed it"
			return 1
		}
		[[ $said == "dist.sh: "*"dubious ownership"* ]] && [ -e "$w/$t/ibnbd-old.$t" ] || {
			echo "$t.sh: $said"
			return 1
		}
	done
	rm -rf "$w"
}

. tests/packages/place.sh
. tests/packages/library.sh

# a clone is released: what must be refused is, and what is made has one version everywhere
release() {
	have git dpkg-parsechangelog rpmspec || return
	local w=$top/$logs/release said
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=x \
		GIT_AUTHOR_EMAIL=x@y.example GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@y.example
	refused() {	# WORDS VERSION
		! said=$(cd "$w" && tests/packages/release.sh "$2" 2>&1) ||
			{ echo "released in spite of: $1"; return 1; }
		[[ $said == "release.sh: "*"$1"* ]] || { echo "got '$said', want '$1'"; return 1; }
		[ -z "$(git -C "$w" status --porcelain --untracked-files=no | grep -v README)" ]
	}
	rm -rf "$w"
	git clone -q "$top" "$w" || return 1
	cp tests/packages/release.sh "$w/tests/packages/"
	git -C "$w" commit -qam "the script under test" 2> /dev/null
	refused "has not passed make check" 9.0.0 || return 1
	mkdir -p "$w/build"
	(cd "$w" && tests/packages/release.sh --tree > build/checked) || return 1
	refused "three numbers" 9.0 || return 1
	refused "not later than" 0.0.1 || return 1
	echo >> "$w/README.md"
	refused "commit them first" 9.0.0 || return 1
	git -C "$w" checkout -q README.md
	(cd "$w" && DATE="2030-01-02 03:04:05 UTC" tests/packages/release.sh 9.0.0) || return 1
	refused "not later than" 9.0.0 || return 1
	expect "$(git -C "$w" describe --exact-match)" v9.0.0 tag || return 1
	(cd "$w/build/release/9.0.0" && sha256sum -c --strict SHA256SUMS) || return 1
	expect "$(tar -xOf "$w"/build/release/9.0.0/ibnbd-9.0.0.tar.gz \
		ibnbd-9.0.0/ibtrs/include/ibtrs/version.h | grep -c '"9.0.0"')" 1 archive ||
		return 1
	said=$(dpkg-parsechangelog -l "$w/debian/changelog" -S Version)
	expect "$said" 9.0.0-1 debian || return 1
	said=$(rpmspec -q --srpm --qf '%{VERSION}' "$w/rpm/ibnbd.spec" 2> /dev/null)
	expect "$said" 9.0.0 rpm || return 1
	expect "$(sed -n 's/^PACKAGE_VERSION=//p' "$w/dkms.conf")" '"9.0.0"' dkms.conf || return 1
	expect "$(sed -n 's/^## //p' "$w/CHANGELOG.md" | head -n 1)" "9.0.0 (2030-01-02)" \
		CHANGELOG.md || return 1
	rm -rf "$w"
}

# ---- from the source ----
local_install() {	# below /usr/local: what is installed names what is installed, and is found
	local o=$top/$logs/local/o dest=$top/$logs/local/dest p said n=0
	rm -rf "$dest"
	make -s -C tools O="$o" CFLAGS=-O0 install DESTDIR="$dest" PREFIX=/usr || return 1
	rm -rf "$dest"
	make -s tools-install O="$o" CFLAGS=-O0 DESTDIR="$dest" PREFIX=/usr/local/ || return 1
	for p in sbin/ibnbd lib/systemd/system/ibnbd-map@.service share/ibnbd/cache-lost \
		lib/systemd/system-generators/ibnbd-generator lib/udev/ibnbd-udev; do
		[ -e "$dest/usr/local/$p" ] || { echo "no /usr/local/$p"; return 1; }
	done
	# (a cluster manager looks for agents in one place)
	[ -e "$dest/etc/udev/rules.d/60-ibnbd.rules" ] && [ "$(ls "$dest/usr/lib")" = ocf ] ||
		return 1
	while read -r p; do
		n=$((n + 1))
		p=${p%.}
		[[ $p == /usr/@(share/doc|src)/* ]] || [ -e "$dest$p" ] || {
			echo "$p, which is not installed, is named by:"
			grep -rlaF "$p" "$dest"
			return 1
		}
	done < <(grep -rhaoP '(?<![A-Za-z])/(usr|lib)/[\w@./\\&-]*ibnbd[\w@./\\&-]*' "$dest" |
		sed 's/\\&//g; s/\\.*//' | sort -u)
	[ $n -ge 6 ] || { echo "only $n paths"; return 1; }
	grep -q '"/usr/local/lib/udev/ibnbd-udev %k"' "$dest/etc/udev/rules.d/60-ibnbd.rules" ||
		return 1
	! said=$(make -s tools-install O="$o" DESTDIR="$dest" PREFIX=/opt/x 2>&1) &&
		[[ $said == *"PREFIX=/opt/x: systemd and udev find nothing there"* ]] || {
		echo "PREFIX=/opt/x: $said"
		return 1
	}
	make -n -s tools-install O="$o" DESTDIR="$dest" PREFIX=/opt/x UNITDIR=/etc/systemd/system \
		GENDIR=/etc/systemd/system-generators RULESDIR=/etc/udev/rules.d > /dev/null
}

no_exec() {	# the tree lies where nothing can be run
	have unshare || return
	[ "$(id -u)" = 0 ] || { echo "must be root, for a namespace"; return 77; }
	local dir
	dir=$(mktemp -d)
	bash tests/packages/dist.sh "$top/$logs/noexec.tar.gz" || return 1
	# shellcheck disable=SC2016
	unshare -m --propagation private bash -ec '
		mount -t tmpfs -o noexec tmpfs "$1" && tar -C "$1" -xzf "$2" && cd "$1"/ibnbd-*
		! tests/packages/dist.sh /dev/null 2> /dev/null
		make dist && make tools CFLAGS=-O0
		cd build/tools && [ -s man/ibnbd.8 ]
		! ./ibnbd help' \
		bash "$dir" "$top/$logs/noexec.tar.gz" || return 1
	rmdir "$dir"
}

# ---- Debian ----
deb_builds() {
	have dpkg-buildpackage dh || return
	tests/packages/deb.sh build/deb || return 1
	[ -s build/deb/ibnbd-dkms_*_all.deb ] &&
		ls build/deb/{ibnbd-{tools,serverd,ping},libibtrs{0,-dev},ibtrs-peer}_*.deb \
			build/deb/{libibnbd{0,-dev},nbdkit-plugin-ibnbd}_*.deb
}
deb_lintian() {
	have lintian || return
	local said line rc=0
	said=$(lintian --allow-root -I --pedantic build/deb/*.changes 2>&1) || rc=1
	# machine code may look like a word: one that is misspelt stands in a source
	while read -r line; do
		[ -n "$line" ] || continue
		[[ $line =~ spelling-error-in-binary\ ([^ ]+) ]] &&
			! grep -rqF "${BASH_REMATCH[1]}" ibtrs ibnbd tools && continue
		echo "$line"
		rc=1
	done <<< "$said"
	return $rc
}
scripts() {	# the maintainer scripts of a package without comments
	local dir=$logs/control
	rm -rf $dir
	dpkg-deb -e build/deb/"$1"_*.deb $dir &&
		grep -hv '^ *#' $dir/{pre,post}{inst,rm} 2>/dev/null
}
deb_keys() {	# root's alone, also after dh_fixperms
	have dpkg-deb || return
	dpkg-deb -c build/deb/ibnbd-tools_*.deb |
		grep '^drwx------ root/root .* \./etc/ibnbd/keys/$'
}
deb_nothing_stops() {
	have dpkg-deb || return
	local all
	all=$(scripts ibnbd-tools; scripts ibnbd-dkms; scripts ibnbd-serverd)
	[ -n "$all" ] || return 1
	! grep -nE -e 'deb-systemd-invoke.*(stop|restart|\$_dh_action)' \
		-e 'systemctl.*(stop|restart|try-)|modprobe|rmmod|ibnbd (unmap|maps|server)' \
		<<< "$all" || return 1
	# apt waits for no server
	! grep -E '(invoke|systemctl) .*start' <<< "$all" | grep -v -e --no-block || return 1
	grep -q "systemctl --system --no-block start ibnbd-maps.target" <<< "$all" &&
		grep -q "enable 'ibnbd-maps.target'" <<< "$all" &&
		grep -q "if deb-systemd-helper debian-installed 'ibnbd-server.service'" \
			<<< "$all" &&	# stays as it was, off at first
		grep -q "if deb-systemd-helper debian-installed 'ibnbd-serverd.service'" \
			<<< "$all"
}
deb_depends() {	# the systems that install them have all of it already, and would not miss it
	have dpkg-deb || return
	local p depends
	depends=", $(dpkg-deb -f build/deb/ibnbd-dkms_*.deb Depends),"
	[[ $depends == *", dkms"[\ ,]* ]] || {
		echo "ibnbd-dkms Depends$depends without dkms"
		return 1
	}
	depends=", $(dpkg-deb -f build/deb/ibnbd-tools_*.deb Depends),"
	for p in libsmartcols1 libmount1 libblkid1 libkeyutils1 kmod udev; do
		[[ $depends == *", $p"[\ ,]* ]] || {
			echo "ibnbd-tools Depends$depends without $p"
			return 1
		}
	done
}
readme_depends() {	# what builds the command as a package builds it from a checkout
	local p words
	words=" $(sed -n '/^sudo apt install /,/^```/p' README.md | tr '\n' ' ') "
	for p in $(sed -n '/^Build-Depends/,/^Standards/p' debian/control |
		grep -oE ' (lib[a-z]*-dev|pkg-config)\>' |
		grep -v -e libibverbs -e librdmacm -e libnbd -e liburing); do	# of libraries
		[[ " $(eval echo "${words%%sudo make*}") " == *" $p "* ]] || {
			echo "README.md, apt install: no $p"
			return 1
		}
	done
	[[ $words == *"tools-install && sudo systemctl enable ibnbd-maps.target "* ]]
}
deb_dkms_source() {	# whole, and it builds nothing of ours but the modules
	have dpkg-deb || return
	local dir=$logs/dkms
	rm -rf $dir
	dpkg-deb -x build/deb/ibnbd-dkms_*.deb $dir
	local f files
	files=$(git ls-files ibtrs ibnbd compat Kbuild dkms.conf |
		grep -v -e gitignore -e ^ibtrs/user/ -e ^ibnbd/user/)
	[ "$(grep -c '\.[ch]$' <<< "$files")" -gt 100 ] || {
		echo "git knows only: $files"
		return 1
	}
	for f in $files; do
		cmp "$f" $dir/usr/src/ibnbd-*/"$f" || return 1
	done
	! find $dir/usr/src -name '*.o' -o -name '*.ko' -o -name config.h | grep .
}

# ---- RPM ----
rpm_builds() {
	have rpmbuild || return
	tests/packages/rpm.sh build/rpm || return 1
	rpm -qp --scripts build/rpm/ibnbd-tools-*.x86_64.rpm 2>/dev/null > $logs/scripts
	! grep -E 'systemctl.*(stop|restart|try-)' $logs/scripts || return 1
	[ "$(grep -v '^ *#' $logs/scripts | grep -E 'systemctl .*start')" = \
		"	systemctl --no-block start ibnbd-maps.target >/dev/null 2>&1 || :" ]
}
rpm_lint() {
	have rpmlint rpmbuild || return
	local said
	said=$(rpmlint -c rpm/rpmlint.toml build/rpm/*.rpm rpm/*.spec 2>&1)
	echo "$said"
	grep -q ' 0 errors, 0 warnings' <<< "$said"
}
rpm_keys() {
	have rpm || return
	rpm -qplv build/rpm/ibnbd-tools-*.x86_64.rpm |
		grep '^drwx------ .* root  *root .* /etc/ibnbd/keys$'
}
rpm_same_source() {	# every file of the modules is in both packages
	have rpm dpkg-deb || return
	diff <(dpkg-deb -c build/deb/ibnbd-dkms_*.deb |
		sed -n 's|.* \./usr/src/ibnbd-[^/]*/\(.*[^/]\)$|\1|p' | sort) \
		<(rpm -qpl build/rpm/ibnbd-dkms-*.noarch.rpm |
		while read -r f; do echo "${f#/usr/src/ibnbd-*/}"; done | grep -v '^/' |
			grep -E '\.|/|Kbuild|Makefile|COPYING' |
			grep -vxE -e 'compat/(expected|include|include/.*[^h])' \
				-e '.*[^.]{1,}/[^.]*(logic|proto|core|client|server|include)' \
				-e '.*[^.]{1,}/[^.]*(ibtrs|expected|linux)' | sort) |
		grep -E '^[<>]' | grep -E '\.(c|h|mk|awk|conf)$' && return 1
	return 0
}

# ---- dkms.conf ----
# KERNEL CONFIGLINES -> wanted or left out, as a DKMS that knows only the old word sees it
gate() {
	local dir=$logs/gate
	rm -rf $dir
	mkdir -p $dir
	printf '%s\n' "${@:2}" > $dir/.config
	kernelver=$1 kernel_source_dir=$dir dkms_tree=/var/lib/dkms bash -c '
		uname() { echo "uname was asked" >&2; exit 1; }
		. ./dkms.conf || exit 1
		[ -z "${BUILD_EXCLUSIVE_KERNEL:-}" ] ||
			[[ $kernelver =~ $BUILD_EXCLUSIVE_KERNEL ]] &&
			echo wanted || echo left out'
}
dkms_gates() {
	local all=("CONFIG_BLOCK=y" "CONFIG_INFINIBAND=m" "CONFIG_INFINIBAND_ADDR_TRANS=y") k
	all+=("CONFIG_KEYS=y")
	for k in 5.10.0-28-amd64 6.1.0-56-amd64 6.12.48+deb13-amd64 5.14.0-503.el9.x86_64 \
		7.3-rc4-amd64 6.18.44; do
		expect "$(gate "$k" "${all[@]}")" wanted "$k" || return 1
	done
	for k in 4.19.0-27-amd64 5.9.16 5.4.0-150-generic 8.0.0-1-amd64 7.4.0-1-amd64; do
		[ ! -e /etc/ibnbd/allow-untested-kernels ] || [[ $k != [78]* ]] || continue
		expect "$(gate "$k" "${all[@]}")" "left out" "$k" || return 1
	done
	expect "$(gate 6.1.0-56-amd64 CONFIG_BLOCK=y "# CONFIG_INFINIBAND is not set")" "left out" \
		"no INFINIBAND" || return 1
	expect "$(gate 6.1.0-56-amd64 CONFIG_BLOCK=y CONFIG_INFINIBAND=m)" "left out" \
		"no ADDR_TRANS" || return 1
	! grep -q 'uname' dkms.conf || return 1
	expect "$(bash -c 'kernelver=6.1.0; . ./dkms.conf
		echo ${#BUILT_MODULE_NAME[@]} $NO_WEAK_MODULES $AUTOINSTALL')" "5 yes yes" "fields"
}
dkms_reads_it() {	# the real one, on a tree of its own
	have dkms || return
	local dir=$top/$logs/dkms-tree v
	v=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
	rm -rf "$dir"
	mkdir -p "$dir/src" "$dir/tree" "$dir/lib"
	make --no-print-directory dkms-source DESTDIR="$dir" PREFIX= || return 1
	dkms add -m ibnbd -v "$v" --sourcetree "$dir/src" --dkmstree "$dir/tree" \
		--installtree "$dir/lib" || return 1
	local said
	said=$(dkms status -m ibnbd --sourcetree "$dir/src" --dkmstree "$dir/tree" \
		--installtree "$dir/lib" 2>&1)
	echo "$said"
	grep -q "^ibnbd/$v: added" <<< "$said" && ! grep -iE 'error|warning|deprecated' <<< "$said"
}

# ---- the vendor's stack ----
stack() {	# VARIABLES..: the line of compat/ofed.mk, without a kernel
	local k=$top/$logs/k
	mkdir -p "$k/include/generated"
	echo '#define UTS_RELEASE "6.1.0-1-x"' > "$k/include/generated/utsrelease.h"
	{
		printf 'UTS_MACHINE := x86_64\nobjtree := %s\ninclude compat/ofed.mk\n' "$k"
		printf %s 'all: ; @echo "$(ofed-line)"; echo "$(NOSTDINC_FLAGS)"; '
		echo 'echo "$(KBUILD_EXTRA_SYMBOLS)"'
	} | make --no-print-directory -f - "$@" 2>&1
}
ofed_choice() {
	local o=$top/$logs/ofa d
	rm -rf "$o"
	fake() {
		mkdir -p "$1/include/rdma" "$1/include/linux"
		touch "$1/Module.symvers" "$1/include/rdma/ib_verbs.h" \
			"$1/include/linux/compat-2.6.h"
	}
	expect "$(stack OFED_ROOT="$o" | head -n 1)" \
		"IBNBD: RDMA stack: the kernel's own in $top/$logs/k" none || return 1
	fake "$o/x86_64/6.1.0-2-x"
	ln -s "$o/x86_64/6.1.0-2-x" "$o/default"
	expect "$(stack OFED_ROOT="$o" | head -n 1)" \
		"IBNBD: RDMA stack: the kernel's own in $top/$logs/k" "another kernel's" || return 1
	for d in "$o/6.1.0-1-x" "$o/x86_64/6.1.0-1-x"; do
		fake "$d"
		expect "$(stack OFED_ROOT="$o" | head -n 1)" "IBNBD: RDMA stack: vendor's in $d" \
			"$d" || return 1
	done
	expect "$(stack OFED_ROOT="$o" | sed -n 2p)" \
		"-I$d/include -I$d/include/uapi -include $d/include/linux/compat-2.6.h" flags ||
		return 1
	expect "$(stack OFED_ROOT="$o" | sed -n 3p)" "$d/Module.symvers" symbols || return 1
	expect "$(stack OFED_ROOT="$o" OFED=no | head -n 1)" \
		"IBNBD: RDMA stack: the kernel's own in $top/$logs/k" OFED=no || return 1
	expect "$(stack OFED="$o/default" | head -n 1)" \
		"IBNBD: RDMA stack: vendor's in $o/default" OFED=DIR || return 1
	rm -rf "$o/x86_64/6.1.0-1-x" "$o/6.1.0-1-x" "$o/default" "$o/x86_64/6.1.0-2-x"
	fake "$o/x86_64/6.1.0-1-x.real/6.1.0-1-x"
	ln -s "$o/x86_64/6.1.0-1-x.real/6.1.0-1-x" "$o/default"
	expect "$(stack OFED_ROOT="$o" | head -n 1)" "IBNBD: RDMA stack: vendor's in $o/default" \
		default || return 1
	! stack OFED="$o/nothing" > /dev/null
}
# ibtrs-core really sees its headers and gets its symbol versions; what make is not known to take
# apart is built in: the probe, objects, and a module of several
ofed_build() {
	local kdir o=$top/$logs/ofa-build src=$top/$logs/ofa-src/-a+b~c@d^ä.e_1 kver
	kdir=$(place_headers) || return 77
	kver=$(sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' "$kdir/include/generated/utsrelease.h")
	rm -rf "$o" "${src%/*}"
	mkdir -p "$o/$kver/include/rdma"
	printf '#define IBNBD_TEST_VENDOR 1\n#include_next <rdma/ib_verbs.h>\n' \
		> "$o/$kver/include/rdma/ib_verbs.h"
	awk -F'\t' -v OFS='\t' '$2 ~ /^(ib|rdma)_/ && $3 ~ /infiniband/ {
		$1 = "0x0badcafe"; $3 = "/vendor/" $3; print
	}' "$kdir/Module.symvers" > "$o/$kver/Module.symvers"
	# (a vendor builds in a place of its own, and modpost tells by that whose symbol it is)
	[ -s "$o/$kver/Module.symvers" ] || return 1
	TAR_OPTIONS='--exclude=*.c' make --no-print-directory dkms-source DESTDIR="${src%/*}" \
		PREFIX= || return 1
	mv "${src%/*}"/src/ibnbd-* "$src" && cd "$src" || return 1
	sed -i 's|^obj-m += ibtrs/ ibnbd/|obj-m += ibtrs/|' Kbuild
	sed -i 's/^obj-m := .*/obj-m := ibtrs-core.o/' ibtrs/Kbuild
	printf '%s\n' '' '#include <rdma/ib_verbs.h>' '#ifndef IBNBD_TEST_VENDOR' \
		'#error the vendor headers were not taken' '#endif' >> ibtrs/core/main.c
	make KDIR="$kdir" OFED_ROOT="$o" modules || return 1
	make KDIR="$kdir" OFED_ROOT="$o" modules 2>&1 |
		grep -F "IBNBD: RDMA stack: vendor's in $o/$kver" || return 1
	modprobe --dump-modversions ibtrs/ibtrs-core.ko | grep -i 0x0badcafe
}

# ---- manuals ----
manuals() {
	have scdoc man || return
	make -s tools lib || return 1
	local m said
	[ "$(ls build/lib/man/*.[137] | wc -l)" = 7 ] || return 1
	for m in build/tools/man/*.[58] build/lib/man/*.[137]; do
		said=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 \
			-Z "$m" 2>&1 > /dev/null)
		[ -z "$said" ] || { echo "$m: $said"; return 1; }
	done
	for m in $(build/tools/ibnbd help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p' |
		sort -u); do
		grep -q "$m" build/tools/man/ibnbd.8 || {
			echo "ibnbd(8) does not know $m"
			return 1
		}
	done
}
rules_verify() {
	have udevadm || return
	udevadm --help | grep -qw verify || {
		echo "udevadm of this machine does not verify (systemd 254 does)"
		return 77
	}
	udevadm verify udev/60-ibnbd.rules
}
no_root() {	# the command and its tests ask for none
	make -s -C tools check > $logs/tools.log 2>&1
	tail -n 20 $logs/tools.log
	grep -qE '^[1-9][0-9]* passed, 0 failed$' $logs/tools.log
}

# udev makes the links as the helper names them, and puts '_' nowhere; a loop device stands in for a
# disk
rules_links() {
	have udevadm unshare || return
	[ "$(id -u)" = 0 ] || { echo "must be root, for a namespace"; return 77; }
	local dev dir=$top/$logs/udev name key value got n=0
	dev=$(find /sys/block/ -name 'loop*' -o -name 'zram*' -o -name 'ram*' | head -n 1)
	[ -n "$dev" ] || { echo "no loop device here"; return 77; }
	make -s -C tools "$top/build/tools/ibnbd-udev" || return 1
	dev=${dev##*/}
	rm -rf "$dir"
	mkdir -p "$dir/rules" "$dir/sys/block/$dev/ibnbd"
	printf '#!/bin/sh\nIBNBD_SYSFS=%s/sys exec %s/build/tools/ibnbd-udev "$@"\n' "$dir" "$top" \
		> "$dir/helper"
	chmod 755 "$dir/helper"
	sed -e "s|\"ibnbd-udev %k\"|\"$dir/helper %k\"|" \
		-e "s|KERNEL!=\"ibnbd.*\", GOTO|KERNEL!=\"$dev\", GOTO|" \
		udev/60-ibnbd.rules > "$dir/rules/60-ibnbd.rules"
	printf 's-1\n' > "$dir/sys/block/$dev/ibnbd/session"
	printf 'a-part1\n' > "$dir/sys/block/$dev/ibnbd/name"
	for name in vol:1 vol/1 dätä dötö $'a\xe4' $'x\u202e' 'a b,c%d*?[' '/a//$(b)' a-part1 \
		'"q"' "it's" '\x2f' '\\'; do
		printf '%s\n' "$name" > "$dir/sys/block/$dev/ibnbd/mapping_path"
		# shellcheck disable=SC2016
		unshare -m --propagation private bash -c '
			mount -t tmpfs tmpfs /run && mkdir -p /run/udev &&
				mount --bind "$1/rules" /usr/lib/udev/rules.d || exit 1
			[ ! -d /etc/udev/rules.d ] || mount -t tmpfs tmpfs /etc/udev/rules.d
			mkdir /run/dev && cp -a "/dev/$2" /dev/null /run/dev/ &&
				mount --bind /run/dev /dev || exit 1
			udevadm test "/sys/block/$2" 2>&1' \
			bash "$dir" "$dev" > "$dir/said" || return 1
		! grep -E 'Replaced|truncated' "$dir/said" || return 1
		while IFS='=' read -r key value; do
			case $key in
			IBNBD_NAME) got=/dev/ibnbd/by-name/$value ;;
			IBNBD_DEVICE_LINK) got='/dev/ibnbd/by-session/s-1/'$value ;;
			IBNBD_PATH) got=/dev/disk/by-path/$value ;;
			*) continue ;;
			esac
			grep -qF -e "$got" "$dir/said" || {
				echo "$name: no $got"
				cat "$dir/said"
				return 1
			}
			n=$((n + 1))
		done < <("$dir/helper" "$dev")
	done
	expect $n 39 "links"
}

# A disk that hangs under the probe keeps what udev knew of it, and is probed once more; and when
# udev has lost its record, the helper hears of the removal.
rules_hang() {
	have udevadm unshare || return
	[ "$(id -u)" = 0 ] || { echo "must be root, for a namespace"; return 77; }
	local dev dir=$top/$logs/udev-hang
	dev=$(find /sys/block/ -name 'loop*' -o -name 'zram*' -o -name 'ram*' | head -n 1)
	[ -n "$dev" ] || { echo "no loop device here"; return 77; }
	dev=${dev##*/}
	rm -rf "$dir"
	mkdir -p "$dir/rules"
	printf '%s\n' '#!/bin/sh' 'echo "$1 late=$IBNBD_LATE" >> /run/calls' 'case $1 in' \
		"--probe) printf 'ID_FS_USAGE=filesystem\nID_FS_TYPE=btrfs\nID_FS_UUID_ENC=1-2\n'" \
		'	[ ! -e /run/hangs ] ;;' \
		"$dev) printf 'IBNBD_NAME=a\nIBNBD_PATH=b\n' ;;" esac > "$dir/helper"
	chmod 755 "$dir/helper"
	sed -e "s|\"ibnbd-udev |\"$dir/helper |" -e 's|ATTRS{ibnbd/state}=="open"|ACTION=="?*"|' \
		-e "s|KERNEL!=\"ibnbd.*\", GOTO|KERNEL!=\"$dev\", GOTO|" \
		udev/60-ibnbd.rules > "$dir/rules/60-ibnbd.rules"
	# shellcheck disable=SC2016
	unshare -m --propagation private bash -c '
		mount -t tmpfs tmpfs /run && mkdir -p /run/udev /run/dev &&
			mount --bind "$1/rules" /usr/lib/udev/rules.d || exit 1
		[ ! -d /etc/udev/rules.d ] || mount -t tmpfs tmpfs /etc/udev/rules.d
		cp -a "/dev/$2" /dev/null /run/dev/ && mount --bind /run/dev /dev || exit 1
		record=/run/udev/data/b$(cat "/sys/block/$2/dev")
		event() {	# ACTION: what the helper was asked, how often anew, and links
			local links="s/^S:\(.*by-[npu][au].*\)/\1/p"
			: > /run/calls
			udevadm test --action="$1" "/sys/block/$2" > /run/said 2>&1
			echo "$1: $(tr "\n" " " < /run/calls)$(grep -c "^run:.*uevent" /run/said)" \
				$(sed -n "$links" "$record" 2> /dev/null | sort)
		}
		event add "$2"; touch /run/hangs; event change "$2"; event change "$2"
		grep -E "ID_FS_TYPE" "$record"
		rm /run/hangs; event change "$2"; event remove "$2"
		event add "$2" > /dev/null; rm "$record"; event remove "$2"' \
		bash "$dir" "$dev" > "$dir/said" || return 1
	local links="disk/by-path/b disk/by-uuid/1-2 ibnbd/by-name/a"
	expect "$(cat "$dir/said")" "add: $dev late= --probe late= 0 $links
change: $dev late= --probe late= 1 $links
change: $dev late= --probe late=1 0 $links
E:ID_FS_TYPE_HELD=btrfs
change: $dev late= --probe late=1 0 $links
remove: 0
remove: --forget late= 0"
}

# What udev runs when it hears ENV of a loop device, which stands in for a SCSI disk.
rules_cache_lost_run() {	# DIR DEV RULE
	printf '%s\n' "$3" > "$1/rules/00-heard.rules"
	# shellcheck disable=SC2016
	unshare -m --propagation private bash -c '
		mount -t tmpfs tmpfs /run && mkdir -p /run/udev &&
			mount --bind "$1/rules" /usr/lib/udev/rules.d || exit 1
		[ ! -d /etc/udev/rules.d ] || mount -t tmpfs tmpfs /etc/udev/rules.d
		udevadm test --action=change "/sys/block/$2" 2>&1' bash "$1" "$2"
}

# A disk that was reset is told to cache-lost, which begins an epoch for what is exported of it, of
# its partitions and of what is made of them, and for each file; and for nothing else
rules_cache_lost() {
	have udevadm unshare || return
	[ "$(id -u)" = 0 ] || { echo "must be root, for a namespace"; return 77; }
	local dev dir=$top/$logs/cache-lost exports name
	local run="/usr/share/ibnbd/cache-lost /devices/"
	dev=$(find /sys/block/ -name 'loop*' -o -name 'zram*' -o -name 'ram*' | head -n 1)
	[ -n "$dev" ] || { echo "no loop device here"; return 77; }
	dev=${dev##*/}
	rm -rf "$dir"
	mkdir -p "$dir/rules"
	sed -e 's|SUBSYSTEM=="scsi"|SUBSYSTEM=="block"|' \
		-e 's|TEST=="/sys/class/ibnbd-server"|TEST=="/sys/class/block"|' \
		udev/61-ibnbd-server.rules > "$dir/rules/61-ibnbd-server.rules"
	rules_cache_lost_run "$dir" "$dev" 'ENV{SDEV_UA}="POWER_ON_RESET_OCCURRED"' \
		> "$dir/said" || return 1
	grep -qE "$run.*/$dev'?\$" "$dir/said" || { cat "$dir/said"; return 1; }
	rules_cache_lost_run "$dir" "$dev" 'ENV{SDEV_UA}="INQUIRY_DATA_HAS_CHANGED"' \
		> "$dir/said" || return 1
	! grep -F "$run" "$dir/said" || return 1

	exports=$dir/sys/class/ibnbd-server/ctl/devices
	mkdir -p "$dir/sys/devices/host/block/sda" "$dir/sys/class/block/sda/sda1" \
		"$dir"/sys/class/block/{sda1,sda/sda1}/holders/dm-0 "$dir/sys/class/block/dm-0"
	touch "$dir/sys/class/block/sda/sda1/partition"
	for name in sda sda1 dm-0 dm-0#2 sdb file; do
		mkdir -p "$exports/$name"
		touch "$exports/$name/cache_lost"
		[ "$name" = file ] || touch "$exports/$name/block_dev"
	done
	# shellcheck disable=SC2016
	unshare -m --propagation private bash -c 'mount --bind "$1" /sys && exec sh "$2" "$3"' \
		bash "$dir/sys" udev/cache-lost /devices/host || return 1
	expect "$(cd "$exports" && grep -l 1 -- */cache_lost | sed 's|/.*||' | sort | xargs)" \
		"dm-0 dm-0#2 file sda sda1" "exports that begin an epoch"
}

step "archive: what git knows, or what git says" archive
step "a directory that make takes apart" place
step "flags of the compiler" place_flags
step "flags of the command" place_tools
step "release: what is refused, one version everywhere" release
step "a file system without exec" no_exec
step "installed below /usr/local" local_install
step "deb: builds" deb_builds
step "deb: lintian has nothing to say" deb_lintian
step "deb: the directory of keys is root's alone" deb_keys
step "deb: no script stops, restarts or unmaps" deb_nothing_stops
step "deb: depends on what it needs" deb_depends
step "deb: a program with the library, from what is packed" deb_library
step "README: what a checkout needs" readme_depends
step "deb: the source of the modules is whole" deb_dkms_source
step "rpm: builds" rpm_builds
step "rpm: rpmlint finds nothing" rpm_lint
step "rpm: the library" rpm_library
step "rpm: the directory of keys is root's alone" rpm_keys
step "rpm: the same source as the deb" rpm_same_source
[ -z "${TWICE:-}" ] || step "archive, deb, rpm: the same bytes elsewhere, later" \
	tests/packages/twice.sh
step "dkms.conf: gates" dkms_gates
step "dkms.conf: dkms takes it" dkms_reads_it
step "vendor stack: which is taken" ofed_choice
step "vendor stack: a build against it, in a directory with odd letters" ofed_build
step "manuals" manuals
step "udev rules verify" rules_verify
step "udev makes the links as they are named" rules_links
step "udev keeps the links of a disk that hangs" rules_hang
step "udev tells the server of a disk that was reset" rules_cache_lost
step "the command" no_root
tests=$(sed -nE '$s/^([0-9]+) passed.*/\1/p' $logs/tools.log 2>/dev/null)
echo "$((passed + ${tests:-0})) passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
