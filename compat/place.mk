# SPDX-License-Identifier: GPL-2.0-only
#
# Included by each Makefile that people call: directories that make and the kernel's build system
# take apart. A blank ends a name there, a colon a target. One line here instead of what follows
# from it.

place-takes := a blank, or one of , : ; \# % $$ & ' " ` * ? ( ) < > | \ in a name \
	means something else to make
place-odd = $(shell printf '[%s]' "$$(pwd -P)" | LC_ALL=C tr -d 'a-zA-Z0-9/._+@=~^\200-\377-')
# help and dist need no make below them
ifneq ($(filter-out help dist,$(or $(MAKECMDGOALS),all)),)
ifneq ($(place-odd),[])
$(error ibnbd cannot be built in "$(CURDIR)": $(place-takes). Move it to another directory)
endif
$(foreach v,KDIR DESTDIR PREFIX O OFED OFED_ROOT,$(if $(filter-out 1,$(words [$($(v))])),\
	$(error $(v)="$($(v))": make takes no blank in the name of a directory)))
endif
