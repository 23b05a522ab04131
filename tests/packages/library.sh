# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# library.sh: functions of run.sh about the packages of libibtrs, libibnbd and what stands on them.
# shellcheck disable=SC2154 # $top and $logs are run.sh's

# What is unpacked of the packages is all that a program needs, and what the autopkgtest asks for;
# and they depend on the libraries of RDMA, which a library with streams alone would not.
deb_library() {
	have dpkg-deb pkg-config || return
	local dir lib p depends
	dir=$(mktemp -d)	# where nobody can run it, whatever this tree lies in
	chmod 755 "$dir"
	for p in libibtrs0 libibtrs-dev ibtrs-peer libibnbd0 libibnbd-dev ibnbd-serverd ibnbd-ping \
		nbdkit-plugin-ibnbd; do
		dpkg-deb -x build/deb/${p}_*.deb "$dir" || return 1
	done
	lib=$(echo "$dir"/usr/lib/*-linux-gnu*)
	[ -f "$lib/libibtrs.so.0" ] && [ "$(readlink "$lib/libibtrs.so")" = libibtrs.so.0 ] &&
		[ -s "$dir/usr/share/man/man7/libibtrs.7.gz" ] || return 1
	depends=", $(dpkg-deb -f build/deb/libibtrs0_*.deb Depends),"
	for p in libibverbs1 librdmacm1 libnettle8 libgnutls30; do
		[[ $depends =~ ", $p"(t64)?[\ ,] ]] || {
			echo "libibtrs0 Depends$depends without $p"
			return 1
		}
	done
	depends=", $(dpkg-deb -f build/deb/ibtrs-peer_*.deb Depends),"
	[[ $depends == *", libibtrs0 (>= 1.0.0),"* && $depends != *verbs* ]] || {
		echo "ibtrs-peer Depends$depends"
		return 1
	}
	depends=", $(dpkg-deb -f build/deb/ibnbd-serverd_*.deb Depends),"
	for p in libibverbs1 librdmacm1 libnbd0 liburing2; do
		[[ $depends == *", $p "* ]] || {
			echo "ibnbd-serverd Depends$depends without $p"
			return 1
		}
	done
	(
		export PATH=$dir/usr/bin:$dir/usr/sbin:$PATH LD_LIBRARY_PATH=$lib \
			MANPATH=$dir/usr/share/man PKG_CONFIG_PATH=$lib/pkgconfig \
			PKG_CONFIG_SYSROOT_DIR=$dir
		debian/tests/library "$dir"/usr/share/doc/libibtrs-dev/examples/libibtrs.c &&
			have nbdkit nbdcopy && debian/tests/disk \
			"$dir"/usr/share/doc/libibnbd-dev/examples/libibnbd.c \
			"$lib"/nbdkit/plugins/nbdkit-ibnbd-plugin.so
	) || return
	rm -rf "$dir"
}

rpm_library() {	# what the .deb has of it, where RPM has it, and what that needs
	have rpm || return
	local p
	rpm -qpl build/rpm/{libibtrs,ibtrs-peer,libibnbd,nbdkit,ibnbd-serverd,ibnbd-ping}-*.rpm \
		2> /dev/null > $logs/files
	for p in '/lib64/libibtrs.so.0' '/lib64/libibtrs.so' '/lib64/pkgconfig/libibtrs.pc' \
		'/include/libibtrs.h' '/bin/ibtrs-peer' '/share/man/man7/libibtrs.7.*' \
		'/share/man/man3/ibtrs_q_submit.3.*' '/share/doc/.*/libibtrs.c' \
		'/lib64/libibnbd.so.0' '/lib64/libibnbd.so' '/lib64/pkgconfig/libibnbd.pc' \
		'/include/libibnbd.h' '/lib64/nbdkit/plugins/nbdkit-ibnbd-plugin.so' \
		'/share/man/man1/nbdkit-ibnbd-plugin.1.*' '/share/man/man7/libibnbd.7.*' \
		'/share/man/man3/ibnbd_q_submit.3.*' '/share/doc/.*/libibnbd.c' \
		'/bin/ibnbd-ping' '/share/man/man1/ibnbd-ping.1.*' '/sbin/ibnbd-serverd' \
		'/share/man/man8/ibnbd-serverd.8.*' \
		'/lib/systemd/system/ibnbd-serverd.service'; do
		grep -qx "/usr$p" $logs/files || grep -qx "/usr${p%.*}" $logs/files || {
			echo "no /usr$p in: $(cat $logs/files)"
			return 1
		}
	done
	rpm -qp --requires build/rpm/libibtrs-[0-9]*.x86_64.rpm > $logs/requires
	grep -q '^librdmacm.so.1' $logs/requires && grep -q '^libibverbs.so.1' $logs/requires &&
		grep -q '^libnettle.so' $logs/requires && grep -q '^libgnutls.so' $logs/requires ||
		{ cat $logs/requires; return 1; }
	rpm -qp --requires build/rpm/ibtrs-peer-*.x86_64.rpm |
		grep -F 'libibtrs.so.0(LIBIBTRS_0)(64bit)' || return 1
	rpm -qp --requires build/rpm/nbdkit-ibnbd-*.x86_64.rpm |
		grep -F 'libibnbd.so.0(LIBIBNBD_0)(64bit)'
}
