# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# library.sh: functions of run.sh about the packages of libibtrs.
# shellcheck disable=SC2154 # $top and $logs are run.sh's

# What is unpacked of the packages is all that a program needs, and what the autopkgtest asks for;
# and they depend on the libraries of RDMA, which a library with streams alone would not.
deb_library() {
	have dpkg-deb pkg-config || return
	local dir lib p depends
	dir=$(mktemp -d)	# where nobody can run it, whatever this tree lies in
	chmod 755 "$dir"
	for p in libibtrs0 libibtrs-dev ibtrs-peer; do
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
	PATH=$dir/usr/bin:$PATH LD_LIBRARY_PATH=$lib MANPATH=$dir/usr/share/man \
		PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir \
		debian/tests/library "$dir"/usr/share/doc/libibtrs-dev/examples/libibtrs.c ||
		return 1
	rm -rf "$dir"
}

rpm_library() {	# what the .deb has of it, where RPM has it, and what that needs
	have rpm || return
	local p
	rpm -qpl build/rpm/{libibtrs,ibtrs-peer}-*.rpm 2> /dev/null > $logs/files
	for p in '/lib64/libibtrs.so.0' '/lib64/libibtrs.so' '/lib64/pkgconfig/libibtrs.pc' \
		'/include/libibtrs.h' '/bin/ibtrs-peer' '/share/man/man7/libibtrs.7.*' \
		'/share/man/man3/ibtrs_q_submit.3.*' '/share/doc/.*/examples/libibtrs.c'; do
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
		grep -F 'libibtrs.so.0(LIBIBTRS_0)(64bit)'
}
