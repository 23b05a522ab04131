# SPDX-License-Identifier: GPL-2.0-only
#
# For people. What the kernel's build system reads is Kbuild.
#   KVER=6.1.0-56-amd64 or KDIR=/path   which kernel to build for
#   W=1 WERROR=1 V=1                    as in the kernel; WERROR turns warnings into errors

ifneq ($(KVER),)
KDIR	?= /lib/modules/$(KVER)/build
else
# the running kernel, or the newest one that has headers here
KDIR	?= $(or $(wildcard /lib/modules/$(shell uname -r)/build),$(shell \
	   ls -d /lib/modules/*/build 2>/dev/null | sort -V | tail -n 1))
endif

# they leave files out of archives, change their bytes, lead to another directory
unexport TAR_OPTIONS GZIP CDPATH

DESTDIR	?=
PREFIX	?= /usr
VERSION	:= $(shell sed -n 's/^.define IBNBD_VERSION "\(.*\)"/\1/p' ibtrs/include/ibtrs/version.h)
JOBS	?= $(shell nproc)
KMAKE	= $(MAKE) -C $(KDIR) M=$(CURDIR)
# what the kernel calls itself; KERNELRELEASE of Debian's headers is another
UTS_RELEASE = $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h)
DIST	:= ibnbd-$(VERSION)
SHIPPED	:= Kbuild Makefile dkms.conf COPYING compat ibtrs ibnbd

include compat/place.mk

.DEFAULT_GOAL := modules
.PHONY: modules clean tools lib lib-install serverd serverd-install \
	unit fuzz lint package check check-all check-tools check-nbdkit \
	dkms-source \
	check-kernels check-boot check-memory check-packages check-pair check-faults check-suites \
	check-laws check-serverd soak churn hostile check-debug check-kcsan check-interop \
	check-long cases demo \
	bench bench-quick bench-lines bench-lines-quick vm-shell \
	install modules_install tools-install dkms-install dkms-remove dist deb rpm repo \
	release help

## Build
modules: | kdir			## the five modules (default)
	$(KMAKE) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) modules

$(filter %.o,$(MAKECMDGOALS)): kdir	# one object: make ibtrs/core/conn.o
	$(KMAKE) $@

tools:				## the ibnbd command
	$(MAKE) -C tools

lib:				## libibtrs and libibnbd, in user space, ibtrs-peer and the plugin for nbdkit: build/lib
	$(MAKE) -C ibtrs/user
	$(MAKE) -C ibnbd/user

serverd:			## ibnbd-serverd, the server in user space: build/serverd (liburing-dev, libblkid-dev, libnbd-dev)
	$(MAKE) -C ibnbd/user/serverd

serverd-install:		## the same, with its manual and unit
	$(MAKE) -C ibnbd/user/serverd install DESTDIR=$(DESTDIR) PREFIX=$(PREFIX)

clean: | kdir			## what a build left behind; build/cache is kept
	$(KMAKE) clean RCS_FIND_IGNORE="\( -name .git -o -path '*/build/cache' \) -prune -o"
	for d in tools ibtrs/user ibnbd/user ibnbd/user/serverd tests/unit tests/fuzz; do \
		[ ! -f $$d/Makefile ] || $(MAKE) -C $$d clean; done

.PHONY: kdir
kdir:
	@[ -e "$(KDIR)/Makefile" ] || { \
		arch=$$(dpkg --print-architecture 2>/dev/null || uname -m); \
		echo "no kernel headers in '$(KDIR)': install linux-headers-$$arch," \
			"or set KDIR=" >&2; exit 1; }

## Test
check:				## all that must hold: unit fuzz lint package kernels boot cases bench-quick bench-lines-quick (as root; uses virtual machines; 30 minutes on two CPUs)
	tests/setup.sh
	mkdir -p build && tests/packages/release.sh --tree > build/checking 2>/dev/null || :
	$(MAKE) test-build
	LIMIT=30 FUZZ=4 MATRIX=--short tests/check.sh \
		"unit nbdkit bench-lines-quick bench-quick | package boot" \
		"cases | ~ lint kernels fuzz"
	mv build/checking build/checked

check-all:			## that and all that takes longer: every kernel, faults, interop, the debug kernels, packages in clean systems .. (most of a day)
	tests/setup.sh
	TWICE=1 tests/check.sh unit nbdkit fuzz lint package kernels boot packages pair cases \
		serverd long bench-quick \
		bench-lines-quick bench interop faults suites soak churn laws memory debug hostile \
		kcsan

unit:				## pure code: tests/unit; with lint a minute when warm
	$(MAKE) -C tests/unit check

check-tools:			## the command against a faked driver, 2 minutes; ONLY=save picks by name: 10 s. UPDATE=1: writes tests/tools/golden
	$(MAKE) -C tools check ONLY=$(ONLY) UPDATE=$(UPDATE)

check-nbdkit: lib	## nbdkit with the plugin against servers in user space, half a minute; ONLY=cache picks by name
	$(MAKE) -C tests/unit disksrv serverd
	tests/nbdkit/run.py $(ONLY)

# bash counts in a variable of that name, so check.sh hands on another
SECONDS	?= $(or $(FUZZ),30)
fuzz:				## pure code: each target for SECONDS=30, those for what people write for twice that
	$(MAKE) -C tests/fuzz check SECONDS=$(SECONDS)

lint:				## shape of the source, sparse, W=1
	tests/lint/run.sh

check-kernels:			## build on every kernel that can be had: tests/kernels; make check leaves out 7.2, rt, arm64, clang and sparse
	tests/kernels/selftest.sh
	tests/kernels/matrix.sh $(MATRIX)

check-packages:			## packages in clean Debian systems, in booted ones; ONLY=debian13, rpm, dkms12 or boot picks
	tests/setup.sh apt-utils createrepo-c gnupg ovmf sbsigntool efitools
	$(MAKE) KVER=$$(bash -c '. tests/vm/env.sh; echo $$KVER') modules tools
	tests/packages/systems.sh $(ONLY)

check-pair:			## a pair of servers under Pacemaker: on a shelf, on DRBD, and NVMe in its place (an hour)
	$(MAKE) check-packages ONLY=cluster

check-boot:			## boot each of those kernels in a virtual machine, with a short test; make check boots one
	tests/setup.sh
	tests/kernels/boot.sh $(MATRIX)

# what runs in the virtual machines: modules with what only tests switch on, the command, libibtrs
# without debug information, a third of the build, but for what reads it: members of a structure
TEST_DEBUG = -g0
bench-lines: TEST_DEBUG =
.PHONY: test-build
test-build:
	tests/vm/setup.sh
	$(MAKE) KVER=$$(bash -c '. tests/vm/env.sh; echo $$KVER') TESTS=1 \
		KCFLAGS='$(strip $(KCFLAGS) $(TEST_DEBUG))' modules tools lib serverd

check-memory: test-build		## let each allocation fail once: tests/cases/memory/no-memory, on the debug kernel too, which finds leaks; there long/cpus-clocks as well
	tests/vm/run.py memory/no-memory
	tests/vm/run.py --debug long/cpus-clocks memory/no-memory

cases: test-build		## tests in virtual machines; CASES="paths/ map/admin" picks some
	tests/vm/run.py -j3 --again $(CASES)

# (what is left out, and why: tests/vm/README.md)
SERVERD_CASES = io/batches io/block-layer io/file io/filesystems io/flush io/mirror io/polled \
	io/verify server/any-message server/client-dies server/dies server/disk-trouble \
	server/full-disk server/identity server/let-in server/lost-client server/lost-open \
	server/not-opened-again server/reboots server/stuck-disk durability/failed-flush \
	durability/fence durability/kill durability/replaced durability/replay \
	integrity/chunk-reuse integrity/closed-late integrity/fenced integrity/ghost-write \
	integrity/given-up-write integrity/late-packets integrity/other-number \
	integrity/superseded integrity/wrong-server trust/names-kept trust/auth \
	trust/auth-optional trust/auth-strangers trust/flood trust/further-paths trust/guesses \
	trust/policy trust/policy-addresses trust/policy-changes trust/policy-exclusive \
	trust/readers-evict-nobody trust/refused-name trust/shares trust/stolen-session \
	trust/strangers-starve-nobody trust/wild-client trust/wild-transport
check-serverd: test-build		## cases of the kernel's server with ibnbd-serverd in its place; CASES= picks
	tests/vm/run.py --again --program build/serverd/ibnbd-serverd \
		--program tests/vm/guest/serve-user $(or $(CASES),$(SERVERD_CASES))

check-long: test-build		## the cases that make check leaves out: rare, long, or covered by others (hours)
	tests/vm/run.py -j2 --again --long

check-interop:			## with the kernel's own rnbd as peer, of 5.10, 6.1, 6.12 and 7.2; SERIES=6.12 picks
	tests/setup.sh
	tests/interop/run.sh $(or $(SERIES),all) $(CASES)

check-faults: test-build		## the cases that break things, and a table of what it cost; LOSSES= of power (1000)
	IBNBD_LOSSES=$(LOSSES) IBNBD_SEED=$(SEED) tests/vm/run.py --faults $(CASES)

MINUTES	?= 5
soak: test-build		## faults at random for MINUTES=5; SEED= repeats a run
	IBNBD_SOAK_MINUTES=$(MINUTES) IBNBD_SEED=$(SEED) tests/vm/run.py long/soak

CYCLES	?= 2000
churn: test-build		## administrators' commands at random, 2000 cycles of map/churn, up to two hours; CYCLES= and SEED= pick
	IBNBD_CHURN_CYCLES=$(CYCLES) IBNBD_SEED=$(SEED) tests/vm/run.py map/churn

check-suites: test-build		## blktests and xfstests, with a local disk as control: SUITES=DIR:DIR names checkouts; TESTS= and FS= pick; EACH= seconds, HOURS= in all; NBD=1: by nbd, nbdkit and libibnbd
	tests/setup.sh
	SUITES="$(SUITES)" TESTS="$(TESTS)" FS="$(FS)" EACH="$(EACH)" HOURS="$(HOURS)" \
	NBD="$(NBD)" tests/suites/check.sh

check-laws:			## break each law of docs/design.md in turn: a test must notice
	tests/vm/setup.sh
	tests/laws/run.sh $(LAWS)

check-debug:			## cases on a kernel with KASAN, lockdep, kmemleak ..; the first time builds it
	tests/vm/setup.sh
	$(MAKE) tools lib
	tests/vm/run.py --debug $(CASES)

EXCHANGES ?= 100000
hostile:			## a server that lies, and a client without sense, 100000 messages each, one without manners, 5000, and guesses at keys, 16000, on the debug kernel (two hours); EXCHANGES= and SEED= pick
	tests/vm/setup.sh
	$(MAKE) tools
	IBNBD_EXCHANGES=$(EXCHANGES) IBNBD_SEED=$(SEED) \
		tests/vm/run.py --debug trust/server-lies trust/wild-client \
		trust/wild-transport trust/guesses

check-kcsan:			## cases on a kernel that looks for data races; the first time builds it
	tests/vm/setup.sh
	$(MAKE) tools lib
	tests/vm/run.py --kcsan $(CASES)

bench: test-build			## instructions for each I/O; BENCH="-t ibnbdN rnbdN" picks
	tests/bench/setup.sh
	tests/bench/bench.py $(BENCH)

bench-quick: test-build		## the gate: four jobs, not more than 2 % above tests/bench/reference.json
	tests/bench/bench.py --quick

bench-lines: test-build			## cache lines that eight CPUs take from each other; LINES="-t ibnbdN -r disks" picks
	tests/bench/setup.sh
	tests/bench/lines.py $(LINES)

bench-lines-quick: test-build		## the gate: lines of our modules, not more than 15 %, or 0.1, above tests/bench/lines.json
	tests/bench/lines.py --gate

## Try
demo:				## two virtual machines, a disk between them, a dead path; MODULES=no: ibnbd-serverd in the server
	tests/vm/setup.sh
	tests/vm/demo.py --modules $(or $(MODULES),yes)

vm-shell:			## a shell in a machine with the modules loaded
	tests/vm/setup.sh
	tests/vm/shell.py

## Install
install: modules_install tools-install	## modules and tools, without DKMS

modules_install: | kdir
	$(KMAKE) KERNELRELEASE=$(UTS_RELEASE) INSTALL_MOD_DIR=updates \
		$(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR)) modules_install
	install -d $(DESTDIR)/var/lib/ibnbd

tools-install:
	$(MAKE) -C tools install DESTDIR=$(DESTDIR) PREFIX=$(PREFIX)

lib-install:			## libibtrs and libibnbd: .so.0, .a, .h, .pc; manuals, ibtrs-peer, the plugin for nbdkit
	$(MAKE) -C ibtrs/user install DESTDIR=$(DESTDIR) PREFIX=$(PREFIX)
	$(MAKE) -C ibnbd/user install DESTDIR=$(DESTDIR) PREFIX=$(PREFIX)

# what DKMS builds from, the same for `make dkms-install` and for the packages
dkms-source:
	install -d $(DESTDIR)$(PREFIX)/src/$(DIST)
	tar -cf - --mode=u+rw,go=rX --exclude='*.o' --exclude='*.ko' --exclude='*.mod*' \
		--exclude='.*.cmd' --exclude='config.h*' --exclude='*.order' \
		--exclude=Module.symvers --exclude='.gitignore' --exclude=ibtrs/user \
		--exclude=ibnbd/user $(SHIPPED) | \
		tar -xf - --no-same-owner -C $(DESTDIR)$(PREFIX)/src/$(DIST)

dkms-install:			## hand the modules to DKMS, for this and every later kernel
	! dkms status -m ibnbd -v $(VERSION) | grep -q . || dkms remove -m ibnbd -v $(VERSION) --all
	rm -rf /usr/src/$(DIST)
	install -d /var/lib/ibnbd
	$(MAKE) --no-print-directory dkms-source DESTDIR= PREFIX=/usr
	dkms add -m ibnbd -v $(VERSION)
	dkms build -m ibnbd -v $(VERSION) $(if $(KVER),-k $(KVER))
	dkms install -m ibnbd -v $(VERSION) $(if $(KVER),-k $(KVER))

dkms-remove:			## the opposite
	dkms remove -m ibnbd -v $(VERSION) --all
	rm -rf /usr/src/$(DIST)

dist:				## build/ibnbd-VERSION.tar.gz
	bash tests/packages/dist.sh build/$(DIST).tar.gz

deb:				## Debian packages in build/deb
	tests/packages/deb.sh

rpm:				## RPM packages in build/rpm
	tests/packages/rpm.sh

repo:				## signed apt and dnf repositories in build/repo; KEY= signs, URL= is where they will be (as root)
	tests/packages/repo.sh

release:			## VERSION=1.0.0: a commit, a tag, an archive with sums in build/release; KEY= signs
	tests/packages/release.sh $(VERSION)

package:			## packages, the command's output, completions, units and rules: no virtual machines
	tests/packages/run.sh

help:				## this list
	@awk -F'[:\t]+.*## ' '/^## / { print substr($$0, 4) ":" } \
		/^[a-z_-]+:.*## / { split($$1, t, ":"); printf "  %-14s %s\n", t[1], $$2 }' Makefile
	@echo; echo "kernel headers: $(KDIR)"
