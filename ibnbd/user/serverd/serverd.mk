# SPDX-License-Identifier: GPL-2.0-only
#
# What ibnbd-serverd is built from besides libibtrs: liburing-dev, libblkid-dev, libnbd-dev.
SERVERD_SRC := $(filter-out %/ibnbd-serverd.c,$(wildcard $(TOP)/ibnbd/user/serverd/*.c)) \
	$(addprefix $(TOP)/ibnbd/logic/,access.c export.c identity.c mapopt.c policy.c text.c) \
	$(addprefix $(TOP)/tools/conf/,file.c key_file.c mapopt_format.c maps_conf.c maps_diag.c \
	  maps_check.c maps_file.c maps_lex.c maps_option.c maps_value.c policy_conf.c \
	  server_conf.c) \
	$(addprefix $(TOP)/tools/host/,hostname.c links.c notify.c store.c sysfs.c) \
	$(addprefix $(TOP)/tools/out/,escape.c say.c)
SERVERD_LIBS := -luring -lblkid -lnbd
