# SPDX-License-Identifier: GPL-2.0-only
#
# compat/config.h: one -fsyntax-only compile of all probes with the kernel's own
# compiler and flags; probes.awk turns its errors into HAVE_x 0 or 1. Included
# by the top Kbuild. The compiler's full answer stays in compat/config.h.log.
#
# A kernel that is none of those we know stops here, with the one line of
# shapes.h that says why, and not with the errors that would follow from it.
#
# When there is no error, a word that is about no source file may say why: a
# shell's, that there is no compiler.
#
# Redone when the probes, the kernel's configuration, the compiler or its flags
# change (if_changed). -DIBNBD_COMPAT_H empties the forced-in compat.h.
#
# Errors are the answers, so what says which warnings there are, and how many
# errors, is the probe's alone: -w, -Wfatal-errors, -Werror=x and the like, by
# their long names too, and what else writes or keeps files, are taken out, of
# the kernel's flags, of KCFLAGS and of CC; then come those warnings that do mean
# "no". Whose words are used is asked of the compiler itself: cc-option tries
# them together with KCFLAGS, and one that is wrong would answer for them.

probe-odd := -w -W% -pedantic% -fmax-errors=% -ferror-limit=% -fdiagnostics% -fno-diagnostics% \
	-fanalyzer -fsyntax-only -save-temps% --save-temps% --no-warnings --pedantic% --warn-% \
	--all-warnings --extra-warnings
probe-cc = $(filter-out $(probe-odd),$(CC))
probe-clang := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
probe-flags := -Wno-error -Wno-unused -Wno-undef -fdiagnostics-color=never \
	$(if $(probe-clang),-fno-caret-diagnostics -ferror-limit=0 \
	  -Werror=incompatible-pointer-types-discards-qualifiers,\
	  -ftrack-macro-expansion=0 -fno-diagnostics-show-caret -fmax-errors=0 \
	  -Werror=discarded-qualifiers) \
	$(addprefix -Werror=,implicit-function-declaration implicit-int int-conversion \
	  incompatible-pointer-types return-type)

probe-whose = $(if $(strip $(KCFLAGS) $(KCPPFLAGS)), \
	Is it of KCFLAGS or KCPPFLAGS? Without them it may work.)

quiet_cmd_probe = PROBE   $@
      cmd_probe = mkdir -p $(@D); \
	LC_ALL=C $(probe-cc) $(filter-out $(probe-odd),$(c_flags)) $(probe-flags) \
		-DIBNBD_COMPAT_H -fsyntax-only $< >/dev/null 2>$@.log || :; \
	LC_ALL=C awk -f $(word 2,$^) $< $@.log >$@.tmp 2>/dev/null || { \
		said=$$(grep -v probes.c $@.log | grep -m 1 'error: ' || \
			grep -v '\.[ch]:' $@.log | tail -n 1) || :; \
		echo "compat: cannot probe the kernel in $(objtree) with $(probe-cc):" \
			"$${said:-the sanity probes came out wrong}.$(probe-whose)" \
			"Log: $@.log" >&2; \
		rm -f $@ $@.tmp; exit 1; }; \
	LC_ALL=C $(probe-cc) -E -P -include $@.tmp $(word 3,$^) 2>&1 >/dev/null | \
		sed -n 's/.*error: .*"\(.*\)".*/compat: \1; see docs\/kernels.md and compat\/config.h.log/p' | \
		head -n 1 >$@.unknown; \
	if [ -s $@.unknown ]; then cat $@.unknown >&2; rm -f $@ $@.tmp $@.unknown; exit 1; fi; \
	rm -f $@.unknown; mv $@.tmp $@

$(obj)/compat/config.h: part-of-module := y
$(obj)/compat/config.h: $(src)/compat/probes.c $(src)/compat/probes.awk $(src)/compat/shapes.h \
		$(wildcard $(objtree)/include/config/auto.conf) FORCE
	$(call if_changed,probe)

targets += compat/config.h
always-y += compat/config.h

# no object before the answers
$(obj)/ibtrs $(obj)/ibnbd: $(obj)/compat/config.h
