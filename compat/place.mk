# SPDX-License-Identifier: GPL-2.0-only
#
# Included by each Makefile that people call: directories that make and the kernel's build system
# take apart. A blank ends a name there, a colon a target, and the kernel's rule for what a module
# is made of cuts a name at its "=". One line here instead of what follows from it.

# what is in the name of this directory besides what is known to work, each once
place-odd := $(shell printf %s "$$(pwd -P)" | LC_ALL=C tr -d 'a-zA-Z0-9/._+@~^\200-\377-' | \
	LC_ALL=C tr '\t\n' '  ' | LC_ALL=C tr '\001-\037\177' '[\001*]' | \
	fold -w 1 | LC_ALL=C sort -u | \
	sed 's/^ $$/a blank/; s/^[[:cntrl:]]$$/a control character/' | paste -s -d ' ' -)
# help and dist need no make below them
ifneq ($(filter-out help dist,$(or $(MAKECMDGOALS),all)),)
ifneq ($(place-odd),)
$(error ibnbd cannot be built in "$(CURDIR)": in the name of a directory $(place-odd) means \
	something else to make. Move it to another one, of letters, digits and . _ + @ ~ ^ -)
endif
$(foreach v,KDIR DESTDIR PREFIX O OFED OFED_ROOT,$(if $(filter-out 1,$(words [$($(v))])),\
	$(error $(v)="$($(v))": make takes no blank in the name of a directory)))
endif
