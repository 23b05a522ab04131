# SPDX-License-Identifier: GPL-2.0-only
#
# Included by the Makefiles of programs and libraries in user space, which have set TOP and O.

include $(dir $(lastword $(MAKEFILE_LIST)))place.mk
Q	:= $(if $(V),,@)
CC	?= gcc
PKG_CONFIG ?= pkg-config
VERSION	:= $(shell sed -n 's/^.define IBNBD_VERSION "\(.*\)"/\1/p' \
	   $(TOP)/ibtrs/include/ibtrs/version.h)
DESTDIR	?=
PREFIX	?= /usr
override PREFIX := $(patsubst %/,%,$(PREFIX))
LIBDIR	?= $(PREFIX)/lib
MANDIR	?= $(PREFIX)/share/man

CFLAGS	?= -O2 -g
WARN	:= -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	   -Wno-missing-field-initializers -Wmissing-prototypes -Wstrict-prototypes -Wvla \
	   $(if $(WERROR),-Werror)
# ours, which a CPPFLAGS or CFLAGS of make's command line takes nothing from
OURS	:= -D_GNU_SOURCE -I$(TOP) -I$(TOP)/ibtrs/include -MMD -MP

.PHONY: all man install clean
.DEFAULT_GOAL := all

$(O)/%.o: $(TOP)/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(OURS) $(CPPFLAGS) $(CFLAGS) $(WARN) -c -o $@ $<

clean:
	rm -rf $(O)
